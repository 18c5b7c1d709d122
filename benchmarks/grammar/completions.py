"""Effect of the grammar constraint on real completions: syntax errors, exact matches, time.

Records without a grammar for their language are left out, for example Objective-C headers that are labelled C or C++.
Each record is completed twice, without and with the constraint. A completion is *worse* if the completed file has more
syntax errors than before (ERROR and MISSING nodes of a fresh tree-sitter parse). `error_reduction` is the share of the
worse completions that the constraint prevents. Some references are worse themselves: a line that opens what later lines
close, a list with an `#ifdef` in C. There, errors say nothing of a completion, so none is counted.

`overhead` is the grammar's share of the decoding time in a prepared document. Editors have the engine prepare a
document when typing pauses. `overhead_of_unseen_documents` includes the first parse of an unseen document.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.figures import ratio, rounded
from benchmarks.quality.sets import FILES, made_apart, open_tasks
from benchmarks.quality.tasks import Task, sample
from completion.cancellation import CancelToken
from completion.completer import Completer
from completion.decoding.constraints import open_grammar
from completion.engine import Engine, product_settings
from completion.model.loading import load_model
from completion.prompt.healing import heal
from completion.request import CompletionRequest, GrammarMode, Suggestion
from completion.syntax.languages import parsed_row, true_language
from completion.syntax.trees import error_count, parse

_IDENTIFIERS = {"c++": "cpp"}


@dataclass(slots=True)
class Outcome:
    """Sums over the records of one language, for one setting of the grammar.

    Attributes:
        worse: Completions that add syntax errors to the file, where the reference does not.
        exact: Completions equal to the reference, except for blanks at both ends.
        exact_sound: Exact completions whose reference adds no errors.
        unsound: References that add errors themselves.
        shown: Completions with text.
        off: Requests that ran without the acceptor.
    """

    records: int = 0
    worse: int = 0
    exact: int = 0
    exact_sound: int = 0
    unsound: int = 0
    shown: int = 0
    off: int = 0
    grammar_ms: float = 0.0
    decode_ms: float = 0.0

    def add(self, other: Outcome) -> None:
        """Add another outcome to this one."""
        for name in Outcome.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def open_requests(
    count: int, data_dir: str | None, languages: Collection[str] = ()
) -> Iterator[tuple[CompletionRequest, str]]:
    """Yield requests and references, at most `count` of each data set and language (of all if none is named)."""
    for task in sample(list(open_tasks([*FILES, *made_apart(data_dir)], data_dir)), count):
        language = _IDENTIFIERS.get(task.language, task.language)
        if language == "typescript" and task.path.endswith(".tsx"):
            language = "typescriptreact"
        has_grammar = parsed_row(true_language(language, task.prefix, task.suffix)) is not None
        if has_grammar and (not languages or language in languages):
            yield _request(task, language), task.reference


def _request(task: Task, language: str) -> CompletionRequest:
    return CompletionRequest(
        prefix=task.prefix,
        suffix=task.document_suffix,
        language=language,
        path=task.path,
        mode=task.mode,
        document=task.id,
        max_tokens=48,
        invoked=True,
    )


def run_completions(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Complete each request without and with the constraint, and return the figures."""
    engine = Engine(load_model(arguments.model), product_settings())
    questions = list(open_requests(arguments.completions, arguments.data_dir, arguments.languages or ()))
    for language in {request.language for request, _ in questions}:
        engine.grammars.load(language)
    gc.collect()
    gc.freeze()  # as the host does once the model is loaded
    totals: dict[tuple[str, GrammarMode], Outcome] = {}
    unseen_ms = 0.0
    for request, reference in track(questions, description="completions", console=console):
        started = perf_counter()
        open_grammar(request, heal(request.prefix), engine.grammars)
        unseen_ms += 1e3 * (perf_counter() - started)
        engine.prepare(request, CancelToken())
        for mode in (GrammarMode.OFF, GrammarMode.STRICT):
            outcome = complete(engine, request, reference, mode)
            totals.setdefault((request.language, mode), Outcome()).add(outcome)
    _print(totals, console)
    without, strict = _sum(totals, GrammarMode.OFF), _sum(totals, GrammarMode.STRICT)
    languages = sorted({language for language, _ in totals})

    def share(part: float, whole: float, digits: int = 4) -> float | None:
        return rounded(ratio(part, whole), digits)

    return {
        "completions": strict.records,
        "errors_without": without.worse,
        "errors_with": strict.worse,
        "error_reduction": _reduction(without.worse, strict.worse),
        "error_reduction_by_language": {
            language: _reduction(totals[language, GrammarMode.OFF].worse, totals[language, GrammarMode.STRICT].worse)
            for language in languages
        },
        "exact_match_change": share(strict.exact - without.exact, strict.records),
        "references_that_add_errors": strict.unsound,
        "exact_match_change_sound_references": share(
            strict.exact_sound - without.exact_sound, strict.records - strict.unsound
        ),
        "overhead": share(strict.grammar_ms, strict.decode_ms),
        "overhead_of_unseen_documents": share(strict.grammar_ms + unseen_ms, strict.decode_ms + unseen_ms),
        "grammar_ms_a_completion": share(strict.grammar_ms, strict.records, 3),
        "decode_ms_a_completion": share(strict.decode_ms, strict.records, 2),
        "acceptor_off_share": share(strict.off, strict.records),
    }


def complete(engine: Completer, request: CompletionRequest, reference: str, mode: GrammarMode) -> Outcome:
    """Complete a request whose language has a grammar, and return what became of it."""
    *_, last = engine.complete(replace(request, grammar=mode), CancelToken())
    assert last.statistics is not None
    offered = last.suggestions[0] if last.suggestions else Suggestion("")
    exact = offered.text.strip() == reference.strip()
    unsound = adds_errors(request, Suggestion(reference))
    return Outcome(
        records=1,
        worse=int(bool(offered.text) and not unsound and adds_errors(request, offered)),
        exact=int(exact),
        exact_sound=int(exact and not unsound),
        unsound=int(unsound),
        shown=int(bool(offered.text)),
        off=int(bool(last.statistics.grammar_off_reason)),
        grammar_ms=last.statistics.grammar_ms,
        decode_ms=last.statistics.decode_ms,
    )


def adds_errors(request: CompletionRequest, suggestion: Suggestion) -> bool:
    """Return whether the document, in a language with a grammar, has more syntax errors with the suggestion."""
    after = request.suffix[suggestion.replace_after :]
    joined, without = request.prefix + suggestion.text + after, request.prefix + request.suffix
    trees = parse(joined, request.language), parse(without, request.language)
    errors_with, errors_without = (0 if tree is None else error_count(tree) for tree in trees)
    return errors_with > errors_without


def _sum(totals: dict[tuple[str, GrammarMode], Outcome], mode: GrammarMode) -> Outcome:
    whole = Outcome()
    for (_, of_mode), outcome in totals.items():
        if of_mode is mode:
            whole.add(outcome)
    return whole


def _reduction(without: int, strict: int) -> float | None:
    """Return the share of the errors that the constraint prevents, None where there were none."""
    return round(1 - strict / without, 4) if without else None


def _print(totals: dict[tuple[str, GrammarMode], Outcome], console: Console) -> None:
    table = Table("language", "grammar", "records", "shown", "more errors", "exact", "acceptor off", "grammar / decode")
    for (language, mode), outcome in sorted(totals.items()):
        share = f"{outcome.grammar_ms / max(1.0, outcome.decode_ms):.3f}"
        figures = (outcome.records, outcome.shown, outcome.worse, outcome.exact, outcome.off, share)
        table.add_row(language, mode.value, *map(str, figures))
    console.print(table)
