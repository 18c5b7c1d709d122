"""Right text that the grammar cuts while somebody types: the document is unfinished at nearly every key.

The sessions of `benchmarks.typing` are typed key by key, without a model. Before each key, the rest of the line that is
typed next is finished like a suggestion of which the model is sure. Any cut of it is a false one. Then files are
written from the top: each line is finished while nothing stands below it, and shown word by word while it grows. In the
languages of `new_languages`, the rest of a line is finished at a cursor inside a word, automatically and manually.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.data import read_records
from benchmarks.grammar.grammars import GRAMMARS
from benchmarks.quality.sets import made_apart, open_tasks
from benchmarks.typing.scripts import Script, choose, key_unit, release_scripts
from completion.decoding.constraints import open_grammar
from completion.decoding.finishing import Finisher
from completion.ending.context import cursor_context, near_before
from completion.prompt.healing import heal
from completion.request import CompletionRequest, StopReason, Suggestion
from completion.syntax.brackets import scan

_CHARACTERS = 100  # of a session
_WRITTEN_LINES = 60


def typed_places(script: Script) -> Iterator[tuple[CompletionRequest, str]]:
    """Yield a request before each key of a session, and the rest of the line that is typed next."""
    text, left = script.text, script.length
    for passage in script.passages:
        text = text[: passage.offset] + text[passage.offset + passage.deleted :]
        before, index = text, 0
        while index < len(passage.typed) and left > 0:
            cursor, line = passage.offset + index, passage.typed[index:].partition("\n")[0]
            if line.strip():
                yield CompletionRequest(text[:cursor], text[cursor:], script.language, script.path, filters=False), line
            unit = key_unit(passage, before, index)
            text = text[:cursor] + unit + text[cursor:]
            index, left = index + len(unit), left - len(unit)
        if left <= 0:
            return


def written_places(path: str, language: str, text: str) -> Iterator[tuple[CompletionRequest, str]]:
    """Yield a request at each of the first lines of a file, with nothing below it, and the rest of the line."""
    cursor = 0
    for line in text.split("\n")[:_WRITTEN_LINES]:
        code = line.lstrip()
        start = cursor + len(line) - len(code)
        if code.strip():
            yield CompletionRequest(text[:start], "\n", language, path, filters=False), code.rstrip()
        cursor += len(line) + 1


def is_cut(request: CompletionRequest, line: str) -> bool:
    """Return whether the grammar cuts a right line."""
    healed = heal(request.prefix)
    finisher = Finisher(request, cursor_context(request), open_grammar(request, healed, GRAMMARS), healed.forced)
    finished = finisher.finish(Suggestion(line, token_log_probabilities=(0.0,)), StopReason.LINE_END)
    return not isinstance(finished, Suggestion) or finished.text != line


def starts_held_back(request: CompletionRequest, line: str) -> Iterator[bool]:
    """Yield, for each start of a right line up to a word or mark, whether it is not shown while the line grows."""
    healed, context = heal(request.prefix), cursor_context(request)
    for word in re.finditer(r"\w+|[^\w\s]+", line[:-1]):
        start = line[: word.end()]
        if not scan(near_before(request.prefix, request.language) + start, request.language).string:
            grammar = open_grammar(request, healed, GRAMMARS)
            yield Finisher(request, context, grammar, healed.forced).visible_part(start, "") != start


def run_typed(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Measure the share of places at which right text is cut, by language."""
    records = read_records("open_release_replay.jsonl.gz", arguments.data_dir)
    typed, written = (Counter[str](), Counter[str]()), (Counter[str](), Counter[str]())
    for script in choose(release_scripts(records, _CHARACTERS), [], arguments.typed, arguments.seed):
        _count(typed, typed_places(script))
    grown = Counter[str](), Counter[str]()
    for record in records[: arguments.typed]:
        places = list(written_places(record["path"], record["language"], record["after"]))
        _count(written, iter(places))
        for request, line in places:
            held_back = list(starts_held_back(request, line))
            grown[0][request.language] += len(held_back)
            grown[1][request.language] += sum(held_back)
    within = Counter[str](), Counter[str]()
    for task in open_tasks(made_apart(arguments.data_dir), arguments.data_dir):
        parts = task.prefix, task.document_suffix, task.language, task.path
        _count(within, ((CompletionRequest(*parts, filters=False, invoked=by), task.reference) for by in (False, True)))
    counts = {"places while typing": typed, "lines from the top": written, "starts of them": grown, "in words": within}
    table = Table("language", *(part for name in counts for part in (name, "cut")))
    for language in sorted(typed[0] | written[0] | within[0]):
        table.add_row(language, *(str(each[language]) for pair in counts.values() for each in pair))
    console.print(table)
    shares = _shares("typed", *typed) | _shares("written", *written) | _shares("grown", *grown)
    return shares | _shares("in_words", *within)


def _count(counts: tuple[Counter[str], Counter[str]], asked: Iterator[tuple[CompletionRequest, str]]) -> None:
    """Count places and false cuts by language."""
    places, cut = counts
    for request, line in asked:
        places[request.language] += 1
        cut[request.language] += is_cut(request, line)


def _shares(name: str, places: Counter[str], cut: Counter[str]) -> dict[str, Any]:
    share = round(cut.total() / places.total(), 4) if places else None
    return {f"{name}_places": places.total(), f"{name}_right_cut_share": share}
