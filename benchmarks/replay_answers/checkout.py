"""Runs the rules of one checkout over recorded answers: a program that imports nothing else of the benchmarks.

`benchmarks.replay_answers.running` starts it with the checkout in `PYTHONPATH`. It reads a place from each line of its
input and writes what becomes of the answer to a line of its output. The prompt and the model are not needed: a source
gives the recorded tokens to the product's own attempt, so that stops, what is shown, the grammar's verdict and the
choice among the searched lines are the checkout's code.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from completion import engine
from completion.cancellation import CancelToken
from completion.decoding import decoder
from completion.decoding.attempt import OWN_ENDS, Attempt
from completion.decoding.constraints import Constraints, ConstraintState
from completion.decoding.decoder import Step
from completion.decoding.local_task import LocalTask
from completion.decoding.run_record import RunRecord
from completion.grammar.grammar import Grammars
from completion.prompt.healing import HealedPrefix
from completion.request import CompletionRequest, GrammarMode, Mode, StopReason, Suggestion
from drafting.verifier import MODEL

product: Any = engine
"""The engine's module, which imports what makes a task, from wherever it is in a version."""
NO_TOKEN: int = vars(decoder)["NO_TOKEN"]  # whichever module defines it
STOP = -2
"""Stands for the model's stop token."""
GRAMMAR = "grammar"
"""Name of the grammar's verdict among the rules that can be switched off."""


class Tokens:
    """The part of a tokenizer that attempts use: the bytes of the recorded tokens."""

    stop_ids = frozenset({STOP})

    def __init__(self) -> None:
        self._bytes: dict[int, bytes] = {}

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Learn the bytes of recorded tokens."""
        self._bytes.update((token, data.encode("latin-1")) for token, data, _ in rows)

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of a token."""
        return self._bytes[token]


class RecordedSource:
    """A source of the recorded tokens, one a step, and then of their end."""

    def __init__(self, constraints: Constraints, rows: Sequence[Sequence[Any]], end: str) -> None:
        self.constraints = constraints
        self.stop_ids = Tokens.stop_ids
        self.tokens: list[int] = []
        self._rows, self._end = rows, end

    def steps(self, cancel: CancelToken) -> Generator[Step]:  # noqa: ARG002 - the protocol's
        """Yield a step for each token."""
        for token, _, log_probability in self._rows:
            self.tokens.append(token)
            yield Step((token,), (MODEL,), (log_probability,), 0, 0.0)
        if self._end != "enough":
            yield Step((NO_TOKEN if self._end == "grammar" else STOP,), (MODEL,), (0.0,), 0, 0.0)


@dataclass(frozen=True, slots=True)
class RecordedPrompt:
    """The part of a prompt that attempts use."""

    healed: HealedPrefix

    @property
    def forced(self) -> bytes:
        """Bytes that the output must start with."""
        return self.healed.forced


@dataclass(frozen=True, slots=True)
class RecordedTask(LocalTask):
    """A task whose tokens are recorded."""

    rows: Sequence[Sequence[Any]]
    end: str

    def source(  # type: ignore[override]
        self,
        constraints: Constraints,
        written: Sequence[int],  # noqa: ARG002 - the protocol's
        state: ConstraintState,  # noqa: ARG002
        *,
        is_first: bool,  # noqa: ARG002
    ) -> RecordedSource:
        """See `Task`."""
        return RecordedSource(constraints, self.rows, self.end)

    def rules_go_on(self, attempt: Attempt) -> bool:
        """Return whether no rule ends the attempt where its tokens do."""
        ended = attempt.rules.text_end(attempt.output.whole()) or attempt.rules.size_end(attempt.output)
        return ended is None


class Checkout:
    """The rules of the checkout that is imported."""

    def __init__(self) -> None:
        self._grammars = Grammars()

    def outcome(self, place: dict[str, Any], *, verdict: bool) -> dict[str, Any]:
        """Return what becomes of the answer at a place, with or without the grammar's verdict."""
        local = self._task(place, GrammarMode.STRICT if verdict else GrammarMode.OFF)
        first = local.first_attempt()
        for _ in local.stream(first, CancelToken()):
            pass
        chosen = _likeliest(local, first, place["branches"])
        result = local.finish(chosen)
        found: dict[str, Any] = {"shown": first.shown, "stop": str(chosen.stop and chosen.stop.reason)}
        read_all = place["end"] == "enough" and len(first.log_probabilities) == len(place["tokens"])
        found |= {"ran_out": read_all and local.rules_go_on(first)}
        if isinstance(result, Suggestion):
            return found | {"text": result.text, "replaces": result.replace_after, "dropped": ""}
        reason = getattr(result, "reason", result)  # an earlier checkout wraps it
        return found | {"text": "", "replaces": 0, "dropped": reason.value}

    def _task(self, place: dict[str, Any], grammar: GrammarMode) -> RecordedTask:
        """Return the task of a place, as `Engine` makes one."""
        request = product.normalised(
            CompletionRequest(
                **{name: place[name] for name in ("prefix", "suffix", "language", "path", "history", "deleted_here")},
                mode=Mode(place["mode"]),
                max_tokens=max(place["max_tokens"], 1),
                grammar=grammar,
                invoked=place["invoked"],
            )
        )
        context = product.cursor_context(request)
        run = place["run"]
        healed = HealedPrefix(request.prefix.removesuffix(run) if run else request.prefix, run)
        tokens = Tokens()
        for rows in (place["tokens"], *(branch["tokens"] for branch in place["branches"])):
            tokens.add(rows)
        stand_ins: Any = (tokens, RecordedPrompt(healed), None)
        return RecordedTask(
            tokenizer=stand_ins[0],
            request=request,
            context=context,
            prompt=stand_ins[1],
            grammar=product.open_grammar(request, healed, self._grammars),
            record=RunRecord(time.perf_counter),
            model=stand_ins[2],
            session=stand_ins[2],
            drafters=stand_ins[2],
            replaced=product.replaced_lines(request.history if request.deleted_here else "", context),
            rows=place["tokens"],
            end=place["end"],
        )


def _likeliest(local: RecordedTask, first: Attempt, branches: Sequence[dict[str, Any]]) -> Attempt:
    """Return the first attempt or the likeliest searched line that keeps what is shown, as the search does."""
    if not local.searches or first.stop is None or first.stop.reason not in OWN_ENDS:
        return first
    chosen, total = first, -float("inf")
    for branch in branches:
        rules = first.rules.for_branch(first.log_probabilities, local.request.max_tokens)
        tokens = tuple(token for token, *_ in branch["tokens"])
        attempt = local.attempt_from(tokens, tuple(each for *_, each in branch["tokens"]), rules)
        if attempt.stop is not None and attempt.stop.reason is StopReason.MAX_TOKENS:
            attempt.stop = replace(attempt.stop, reason=StopReason.STOP_TOKEN)  # the record ends with the text
        if branch["total"] <= total or attempt.stop is None or attempt.stop.reason not in OWN_ENDS:
            continue
        found = local.finish(attempt)
        if isinstance(found, Suggestion) and _keeps(found.text, first.shown):
            chosen, total = attempt, branch["total"]
            chosen.shown = first.shown
    return chosen


def _keeps(text: str, shown: str) -> bool:
    """Return whether a text begins with the words that were shown."""
    return text.startswith(shown) and not (shown[-1:].isalnum() and text[len(shown) :][:1].isalnum())


class Rules:
    """The rules of the checkout: some are off, and of the others it is noted which did anything.

    Attributes:
        acting: Names of the rules that did anything since this was cleared.
        names: Names of all rules; none in a checkout without a table of rules.
    """

    def __init__(self) -> None:
        decision = sys.modules.get("completion.ending.decision")
        known = getattr(decision, "RULES", {})
        self._table: dict[Any, Any] = known if isinstance(known, dict) else {}
        self._all = {self._noting(rule): reasons for rule, reasons in self._table.items()}
        self.acting = set[str]()
        self.names = [rule.__name__ for rule in self._all]

    def switch_off(self, off: Collection[str]) -> None:
        """Leave these rules out of the table, and no others.

        Raises:
            SystemExit: There is no rule with one of these names.
        """
        if unknown := set(off) - {*self.names, GRAMMAR}:
            raise SystemExit(f"The checkout has no rule {', '.join(sorted(unknown))}.")
        self._table.clear()
        self._table.update({rule: reasons for rule, reasons in self._all.items() if rule.__name__ not in off})

    def _noting(self, rule: Any) -> Any:  # noqa: ANN401 - a rule of any version
        def noting(text: str, context: Any) -> Any:  # noqa: ANN401
            ends = rule(text, context)
            idle = {"maybe": len(text), "sure": len(text), "over": False, "replaces": 0}
            if any(getattr(ends, name, value) != value for name, value in idle.items()):
                self.acting.add(rule.__name__)
            return ends

        noting.__name__ = rule.__name__
        return noting


def outcomes(lines: Iterable[str], off: Collection[str], *, each: bool) -> Iterator[dict[str, Any]]:
    """Yield what becomes of the answer at each place, and what without each rule that does anything there.

    Args:
        lines: The places.
        off: Rules that are switched off.
        each: Whether each rule is switched off in turn, too.
    """
    rules, checkout = Rules(), Checkout()

    def outcome(place: dict[str, Any], off: Collection[str]) -> dict[str, Any]:
        rules.switch_off(off)
        rules.acting.clear()
        try:
            found = checkout.outcome(place, verdict=GRAMMAR not in off)
        except Exception as error:  # noqa: BLE001 - a checkout that fails at a place is compared at the others
            found = {"error": f"{type(error).__name__}: {error}"}
        return found | {"acting": [name for name in rules.names if name in rules.acting]}

    for line in lines:
        place = json.loads(line)
        whole = outcome(place, off)
        tried = [*whole["acting"], GRAMMAR] if each else []
        yield {"id": place["id"]} | whole | {"without": {name: outcome(place, [*off, name]) for name in tried}}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="folder whose code must be the imported one")
    parser.add_argument("--off", default="", help="rules that are switched off, comma-separated")
    parser.add_argument("--each", action="store_true", help="switch off each rule in turn, too")
    given = parser.parse_args()
    used = Path(str(product.__file__)).resolve()
    if given.checkout.resolve() not in used.parents:
        parser.error(f"{used} is imported, not the code of {given.checkout}. Name its folder in PYTHONPATH.")
    for found in outcomes(sys.stdin, [name for name in given.off.split(",") if name], each=given.each):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
