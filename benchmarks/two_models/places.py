"""What two models answer at the same places, in the product's engine, with the times of each way to use them."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.data import read_answers
from benchmarks.quality.rows import ROWS
from benchmarks.quality.tasks import Task
from benchmarks.two_models.listening import MAX_NODES, ListeningDrafters
from benchmarks.two_models.pair import PairModel, Role
from benchmarks.two_models.steps import show, step_ms
from benchmarks.two_models.written import LARGER_PROMPT_SHARE, with_prompts
from completion.cancellation import CancelToken
from completion.decoding.step_costs import load_or_measure_costs
from completion.engine import Engine, product_settings
from completion.model.loading import LoadedModel
from completion.prompt.healing import heal
from completion.prompt.line_endings import normalised
from completion.request import CompletionRequest, Suggestion, WorkspaceUpdate
from completion.workspace.context import WorkspaceContext
from drafting.draft_budget import StepCosts

MAX_TOKENS = 64
"""Maximum number of tokens of a text: only first lines are compared."""
STEP_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
"""Rows of the steps whose times are measured."""
_ROW, _STEPS = "pair", ("", "steps")
Answer = dict[str, Any]
"""What one way answers at a place: text, log_probability, greedy tokens, passes (model and rows of each) and ms."""


class Pair:
    """Two models in one engine: both compute each prompt, of the length that the product gives the larger one."""

    def __init__(self, small: LoadedModel, larger: LoadedModel) -> None:
        self.model = PairModel(small.model, larger.model)
        self._models = {Role.SMALL: small.model, Role.LARGER: larger.model}
        self._tokenizer, self._drafters = larger.tokenizer, ListeningDrafters(larger)
        costs = load_or_measure_costs(small, MAX_NODES)
        both = dict(enumerate((costs.costs_ms + self._drafters.costs.costs_ms).tolist()))
        self._costs = {
            Role.SMALL: costs,
            Role.LARGER: self._drafters.costs,
            Role.CASCADE: StepCosts(both, MAX_NODES),
        }
        settings = with_prompts(product_settings(), LARGER_PROMPT_SHARE)
        self._context_tokens = settings.budget.context_tokens
        self._engine = Engine(replace(larger, model=self.model), settings, self._drafters)

    def step_ms(self, repeats: int) -> dict[str, dict[int, float]]:
        """Return the time of each model's steps by their rows, measured in turn."""
        found = step_ms([(model, STEP_ROWS) for model in self._models.values()], repeats)
        return dict(zip(map(str, self._models), found, strict=True))

    def answers(self, task: Task) -> dict[str, Any]:
        """Return what each way answers at a place, and what the larger model says to both texts."""
        files = WorkspaceContext()
        files.update(WorkspaceUpdate("", task.files))
        request = ROWS["whole"].request(task, files, self._context_tokens)
        request = replace(request, workspace=task.id, max_tokens=MAX_TOKENS)
        before = self.model.prompt_tokens
        self._engine.prepare(request, CancelToken())
        prompt_tokens = self.model.prompt_tokens - before
        small, small_text = self._answer(task, request, Role.SMALL)
        found, larger_text = {"small": small}, list[int]()
        for way in Random(task.id).sample(["larger", "drafted", "cascade"], 3):  # the first is slower
            role = Role.CASCADE if way == "cascade" else Role.LARGER
            found[way], text = self._answer(task, request, role, () if way == "larger" else small_text)
            larger_text = text if way == "larger" else larger_text
        judged = self._judged(request, small_text, larger_text)
        return {"id": task.id, "row": _ROW, "prompt_tokens": prompt_tokens, "answers": found, "judged": judged}

    def _answer(
        self, task: Task, request: CompletionRequest, role: Role, given: Sequence[int] = ()
    ) -> tuple[Answer, list[int]]:
        """Return an answer, and the tokens of its text with the run before the cursor."""
        self.model.role, self._drafters.costs = role, self._costs[role]
        self._drafters.listen(given)
        self.model.passes, started = [], time.perf_counter()
        *_, last = self._engine.complete(request, CancelToken())
        ms = 1e3 * (time.perf_counter() - started)
        self._drafters.close_workspace(request.workspace)
        suggestion = last.suggestions[0] if last.suggestions else None
        answer = {
            "text": task.inserted(suggestion) if suggestion else "",
            "log_probability": suggestion.log_probability if suggestion else -math.inf,
            "tokens": list(self._drafters.first.tokens) if self._drafters.first else [],
            "passes": self.model.passes,
            "ms": round(ms, 1),
        }
        return answer, self._tokens(request, suggestion)

    def _tokens(self, request: CompletionRequest, suggestion: Suggestion | None) -> list[int]:
        run = heal(normalised(request).prefix).run if request.healing else ""
        return self._tokenizer.encode(run + suggestion.text)[:MAX_TOKENS] if suggestion else []

    def _judged(self, request: CompletionRequest, *texts: Sequence[int]) -> list[dict[str, Any]]:
        """Return what the larger model says to each text; see `listening.Judgement`."""
        self.model.role = Role.LARGER
        self.model.larger.asked = [text for text in texts if text]
        for _ in self._engine.complete(replace(request, max_tokens=1, drafting=False), CancelToken()):
            pass
        judgements = iter(self.model.larger.judgements)
        found = []
        for text in texts:
            said = next(judgements) if text else None
            found.append(
                {
                    "log_probability": said.log_probability if said else -math.inf,
                    "tokens": text,
                    "ms": round(said.ms, 1) if said else 0.0,
                }
            )
        return found


def answers_at(
    tasks: Sequence[Task], make: Callable[[], Pair], out: Path | None, models: str, repeats: int
) -> tuple[dict[str, dict[int, float]], list[dict[str, Any]]]:
    """Return the times of both models' steps by rows, and the answers at each place.

    What a file has of these models is not made again; what is new is added to it at once.
    """
    made, found = read_answers(out, models), list[dict[str, Any]]()
    pair: Pair | None = None
    with (out or Path(os.devnull)).open("a", encoding="utf-8") as file:
        for number, task in enumerate(tasks):
            if (task.id, _ROW) not in made:
                pair = pair or make()
                made[task.id, _ROW] = {"model": models, **pair.answers(task)}
                print(json.dumps(made[task.id, _ROW]), file=file, flush=True)
            found.append(made[task.id, _ROW])
            show(f"places {number + 1}/{len(tasks)}")
        if _STEPS not in made:
            times = (pair or make()).step_ms(repeats)
            made[_STEPS] = {"model": models, "id": _STEPS[0], "row": _STEPS[1], "ms": times}
            print(json.dumps(made[_STEPS]), file=file)
    steps = {model: {int(rows): ms for rows, ms in times.items()} for model, times in made[_STEPS]["ms"].items()}
    return steps, found
