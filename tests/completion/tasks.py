"""Tasks for tests: requests whose prompt is in a KV session of its own, with nothing decoded yet."""

from __future__ import annotations

import dataclasses

from completion.cache.kv_session import KVSession, SessionSettings
from completion.cancellation import CancelToken
from completion.decoding.constraints import open_grammar
from completion.decoding.joint_passes import JointPasses
from completion.decoding.local_task import LocalTask
from completion.decoding.run_record import RunRecord
from completion.ending.context import cursor_context
from completion.model.loading import LoadedModel
from completion.next_edit.candidates import replaced_lines
from completion.prompt.fim_format import detect_format
from completion.prompt.pace import PromptBudget
from completion.prompt.planner import Prompt, PromptPlanner
from completion.request import CacheMode, CompletionRequest, Mode
from drafting.calibration import default_calibration
from drafting.draft_budget import StepCosts
from drafting.session import Drafters
from tests.completion.grammar.acceptors import GRAMMARS
from tests.tiny_models import STACK

DOCUMENT = STACK[: STACK.index("\n    def pop")]


def prompt_of(loaded: LoadedModel, request: CompletionRequest) -> Prompt:
    """Return the prompt of a request."""
    planner = PromptPlanner(loaded.tokenizer, detect_format(loaded.tokenizer.special, "tiny"))
    return planner.plan(request, PromptBudget())


Sessions = dict[tuple[int, ...], KVSession]
"""Sessions by their prompts' tokens, for tests with the same prompts: the default model takes a second for one."""


def task_at(
    loaded: LoadedModel,
    cursor: int,
    settings: SessionSettings | None = None,
    sessions: Sessions | None = None,
    **changes: object,
) -> LocalTask:
    """Return a request at a cursor in DOCUMENT, with its prompt in a session of its own, or in that of `sessions`."""
    request = CompletionRequest(
        DOCUMENT[:cursor], DOCUMENT[cursor:], "python", mode=Mode.BLOCK, max_tokens=16, filters=False, suggestions=4
    )
    request = dataclasses.replace(request, **changes)
    prompt = prompt_of(loaded, request)
    session = KVSession(loaded.model, settings or SessionSettings(capacity=1024))
    if sessions is not None:
        session = sessions.setdefault(tuple(prompt.tokens), session)
    session.prepare(prompt, CacheMode.EXACT, CancelToken())
    context = cursor_context(request)
    return LocalTask(
        tokenizer=loaded.tokenizer,
        request=request,
        context=context,
        prompt=prompt,
        grammar=open_grammar(request, prompt.healed, GRAMMARS),
        record=RunRecord(lambda: 0.0),
        model=JointPasses(loaded.model),
        session=session,
        drafters=Drafters(default_calibration(), StepCosts({0: 1.0, 8: 1.2}, 8), loaded.tokenizer.vocabulary_size),
        replaced=replaced_lines(request.history, context),
    )
