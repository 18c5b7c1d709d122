"""Right text that the grammar cuts while somebody types: the document is unfinished at nearly every key.

The sessions of `benchmarks.typing` are typed key by key, without a model. Before each key, the rest of the line that is
typed next is finished like a suggestion of which the model is sure. Any cut of it is a false one.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.data import read_records
from benchmarks.grammar.grammars import GRAMMARS
from benchmarks.typing.scripts import Script, choose, key_unit, release_scripts
from completion.decoding.finishing import Finisher, open_grammar
from completion.prompt.healing import heal
from completion.request import CompletionRequest, StopReason, Suggestion
from completion.stopping.mode import cursor_context

_CHARACTERS = 100  # of a session


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


def is_cut(request: CompletionRequest, line: str) -> bool:
    """Return whether the grammar cuts a right line."""
    healed = heal(request.prefix)
    finisher = Finisher(request, cursor_context(request), open_grammar(request, healed, GRAMMARS), healed.forced)
    finished = finisher.finish(Suggestion(line, token_log_probabilities=(0.0,)), StopReason.LINE_END)
    return not isinstance(finished, Suggestion) or finished.text != line


def run_typed(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Measure the share of places at which right text is cut, by language."""
    scripts = release_scripts(read_records("open_release_replay.jsonl.gz", arguments.data_dir), _CHARACTERS)
    places, cut = Counter[str](), Counter[str]()
    for script in choose(scripts, [], arguments.typed, arguments.seed):
        for request, line in typed_places(script):
            places[script.language] += 1
            cut[script.language] += is_cut(request, line)
    table = Table("language", "places while typing", "right lines cut")
    for language, count in sorted(places.items()):
        table.add_row(language, str(count), str(cut[language]))
    console.print(table)
    return {
        "typed_places": places.total(),
        "typed_right_cut_share": round(cut.total() / places.total(), 4) if places else None,
    }
