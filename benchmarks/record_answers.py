"""`python -m benchmarks.record_answers --out FILE`: what the model writes at the open places, before any rule ends it.

The prompt, the grammar and the search are the product's. `python -m benchmarks.replay_answers` runs the rules over it.
A file is continued: places that it has are left out. Sets and languages take turns, so that it may be ended early.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from benchmarks.quality.rows import ROWS
from benchmarks.quality.sets import RECORDED, half_of, open_tasks
from benchmarks.quality.tasks import Task, distinct
from benchmarks.replay_answers.answers import Answer, Branch, Token, in_turns, read, write
from completion.alternatives.likeliest_line import likeliest_line
from completion.cancellation import CancelToken
from completion.decoding.attempt import Attempt
from completion.decoding.constraints import NO_TOKEN, Constraints, ConstraintState
from completion.decoding.decoder import Decoder, Proposal, Step
from completion.decoding.local_task import LocalTask
from completion.decoding.run_record import RunRecord
from completion.ending.rule import DropReason
from completion.engine import Engine, product_settings
from completion.host.process.address import normal_model
from completion.model.causal_model import Logits
from completion.model.loading import load_model
from completion.request import CompletionRequest, Suggestion, WorkspaceUpdate
from completion.workspace.context import WorkspaceContext

FURTHER_TOKENS = 24
"""Number of tokens after the end that today's rules choose: other rules may end a text later."""


@dataclass(slots=True)
class HeardDecoder(Decoder):
    """A decoder that keeps its steps."""

    heard: list[Step] = field(default_factory=list)

    def accept(self, proposal: Proposal, logits: Logits) -> Step:
        """See `Decoder`."""
        self.heard.append(step := Decoder.accept(self, proposal, logits))
        return step


@dataclass(frozen=True, slots=True)
class HeardTask(LocalTask):
    """A task that keeps the attempts that its search finishes."""

    finished: list[Attempt]

    def source(
        self, constraints: Constraints, written: Sequence[int], state: ConstraintState, *, is_first: bool
    ) -> Decoder:
        """See `Task`."""
        decoder = LocalTask.source(self, constraints, written, state, is_first=is_first)
        return HeardDecoder(**_fields(decoder)) if is_first else decoder

    def finish(self, attempt: Attempt) -> Suggestion | DropReason:
        """See `Task`."""
        self.finished.append(attempt)
        return LocalTask.finish(self, attempt)

    def written(self, attempt: Attempt) -> tuple[Token, ...]:
        """Return the tokens of an attempt, also those that it shares with the first one."""
        decoder, known = attempt.source, attempt.log_probabilities
        assert isinstance(decoder, Decoder)
        tokens = (*decoder.prompt[len(self.prompt.tokens) :], *decoder.tokens)
        return tuple(_token(decoder, *each) for each in zip(tokens[: len(known)], known, strict=True))


def _fields(one: Decoder | LocalTask) -> dict[str, Any]:
    return {each.name: getattr(one, each.name) for each in fields(one)}


class HeardEngine(Engine):
    """An engine that answers with what the model wrote."""

    def answer(self, task: Task, request: CompletionRequest, model: str) -> Answer:
        """Return what the model writes at a task's place."""
        started = time.perf_counter()
        with self._sessions.pinned(request.document):
            local = self._start(request, CancelToken(), RunRecord(time.perf_counter))
            heard = HeardTask(**_fields(local), finished=[])
            first = heard.first_attempt()
            for _ in heard.stream(first, CancelToken()):
                pass
            likeliest_line(heard, first, CancelToken())
            assert isinstance(first.source, HeardDecoder)
            _go_on(first.source, len(first.log_probabilities) + FURTHER_TOKENS, request.max_tokens)
        tokens, end = _written(first.source)
        return Answer(
            id=task.id,
            model=model,
            run=local.prompt.healed.run,
            tokens=tokens,
            end=end,
            stopped=len(first.log_probabilities),
            total=round(first.total(), 4),
            branches=tuple(Branch(heard.written(each), round(each.total(), 4)) for each in heard.finished),
            seconds=round(time.perf_counter() - started, 2),
        )


def _go_on(decoder: HeardDecoder, tokens: int, most: int) -> None:
    """Decode until there are so many tokens, or the text ends."""
    ended = decoder.tokens and (decoder.tokens[-1] == NO_TOKEN or decoder.tokens[-1] in decoder.stop_ids)
    steps: Generator[Step] = decoder.steps(CancelToken())
    while not ended and len(decoder.tokens) < min(tokens, most):
        ended = next(steps, None) is None
    steps.close()


def _written(decoder: HeardDecoder) -> tuple[tuple[Token, ...], str]:
    """Return the tokens of all steps up to an end, and why they end there."""
    found = list[Token]()
    for step in decoder.heard:
        for token, log_probability in zip(step.tokens, step.log_probabilities, strict=True):
            if token == NO_TOKEN or token in decoder.stop_ids:
                return tuple(found), "grammar" if token == NO_TOKEN else "stop_token"
            found.append(_token(decoder, token, log_probability))
    return tuple(found), "enough"


def _token(decoder: Decoder, token: int, log_probability: float) -> Token:
    return Token(token, decoder.constraints.token_bytes(token).decode("latin-1"), log_probability)


def record(tasks: Sequence[Task], out: Path, model: str) -> None:
    """Add the answers at these places to a file, and print how far it is."""
    known = read(out, model)
    missing = [task for task in tasks if task.id not in known]
    print(f"{len(tasks)} places, {len(tasks) - len(missing)} known", file=sys.stderr, flush=True)
    if not missing:
        return
    # Without bounds on time, other work on the machine does not change the answers.
    settings = replace(product_settings(), full_prompt_s=math.inf, cold_prompt_s=math.inf)
    engine, started = HeardEngine(load_model(model), settings), time.monotonic()
    with out.open("a", encoding="utf-8") as lines:
        for number, task in enumerate(missing, 1):
            files = WorkspaceContext()
            files.update(WorkspaceUpdate("", task.files))
            request = ROWS["whole"].request(task, files, settings.budget.context_tokens)
            write(engine.answer(task, request, model), lines)
            spent = time.monotonic() - started
            left_min = spent / number * (len(missing) - number) / 60
            print(f"{number}/{len(missing)} {spent / number:.1f} s each, {left_min:.0f} min left", file=sys.stderr)
    engine.close()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_answers", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="file of the answers; an existing file is continued")
    parser.add_argument("--sets", default=",".join(RECORDED), help="data sets, comma-separated (default: %(default)s)")
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--half", type=int, choices=(0, 1), help="only places of one half of the packages")
    parser.add_argument("--limit", type=int, default=0, help="maximum number of places of each set; 0 for all")
    parser.add_argument("--model", default="default", help="model that is asked (default: %(default)s)")
    given = parser.parse_args()
    tasks = distinct(open_tasks(given.sets.split(","), given.data_dir))
    chosen = [task for task in tasks if given.half in (None, half_of(task.id))]
    ordered = sorted(chosen, key=lambda task: hashlib.sha256(task.id.encode()).digest())
    record(in_turns(ordered, given.limit), given.out, normal_model(given.model))


if __name__ == "__main__":
    main()
