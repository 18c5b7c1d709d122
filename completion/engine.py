"""The engine on this machine: each document's cached prompt, the local model, and the drafters."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from completion.cache.kv_session import KVSession, SessionSettings
from completion.cache.kv_sessions import KVSessions
from completion.cancellation import CancelToken
from completion.completer import Completer
from completion.decoding.constraints import open_grammar
from completion.decoding.joint_passes import JointPasses
from completion.decoding.local_task import LocalTask
from completion.decoding.run_record import RunRecord
from completion.decoding.step_costs import PROCESSOR_NODES, keep_calibration, keep_quicker_costs, limits, make_drafters
from completion.edits import NextEditRequest, NextEdits
from completion.ending.context import cursor_context
from completion.errors import ParseLimitError
from completion.memory import Held, MemoryPart
from completion.model.loading import LoadedModel
from completion.next_edit.candidates import replaced_lines
from completion.next_edit.finder import next_edits
from completion.next_edit.gate import Gate
from completion.next_edit.judge import Judge
from completion.next_edit.writer import WRITTEN, EditWriter
from completion.prompt.edit_format import detect_edit_format
from completion.prompt.line_endings import normalised
from completion.prompt.pace import COLD_PROMPT_S, FULL_PROMPT_S, PromptBudget, PromptPace
from completion.prompt.planner import Prompt, PromptPlanner
from completion.request import CacheMode, CompletionEvent, CompletionRequest, ContextFile
from completion.syntax.embedded import embedded
from completion.syntax.languages import true_language
from completion.syntax.parsing import IN_PROCESS, Parsing
from completion.workspace.workspaces import BUDGET_BYTES, Workspaces
from drafting.session import Drafters

FIRST_STEP_TOKENS = 8
"""Maximum number of new tokens at a prompt's end that the first decoding step computes itself."""

_NEXT_EDIT = "\0next edit"  # end of the key of a document's second KV session


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of an engine.

    Attributes:
        full_prompt_s: Maximum time for a prompt of which nothing is cached, in seconds. On a slower machine the budget
            shrinks.
        cold_prompt_s: Maximum time that a request waits for a prompt that is mostly uncached, in seconds. If the full
            prompt would take longer, the request gets a short one; `Engine.prepare` computes the full one.
        max_nodes: Maximum number of nodes of a draft tree, more on a GPU whose rows are nearly free; each step
            decides how many are worth their time.
        owner_of: Returns whose a document is, by its key.
    """

    budget: PromptBudget = field(default_factory=PromptBudget)
    full_prompt_s: float = math.inf
    cold_prompt_s: float = math.inf
    sessions: SessionSettings = field(default_factory=SessionSettings)
    workspace_bytes: int = BUDGET_BYTES
    max_nodes: int = PROCESSOR_NODES
    owner_of: Callable[[str], str] = str


def product_settings(room_bytes: int = 0, workspace_bytes: int = 0) -> EngineSettings:
    """Return the settings of the engine host, which bounds prompts by the machine's measured speed.

    Args:
        room_bytes: Memory for the KV sessions of several users, no less than the default; 0 for one user.
        workspace_bytes: Memory for the workspaces, no less than the default.
    """
    sessions = SessionSettings(budget_bytes=max(room_bytes, SessionSettings().budget_bytes), shared=room_bytes > 0)
    return EngineSettings(
        full_prompt_s=FULL_PROMPT_S,
        cold_prompt_s=COLD_PROMPT_S,
        sessions=sessions,
        workspace_bytes=max(workspace_bytes, BUDGET_BYTES),
    )


class Engine(Completer):
    """Completes requests with the local model.

    Attributes:
        passes: The model, which runs requests together that are started there.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        settings: EngineSettings | None = None,
        drafters: Drafters | None = None,
        parsing: Parsing = IN_PROCESS,
    ) -> None:
        settings = settings or EngineSettings()
        self.passes = JointPasses(loaded.model)
        self._drafters = drafters or make_drafters(loaded, settings.max_nodes)
        longer, self.passes.joint_requests = limits(self._drafters.costs, self.passes.joint_requests)
        sessions = settings.sessions.longer(longer)
        max_tokens = sessions.max_prompt_tokens(loaded.model.shape.max_positions)
        planner = PromptPlanner.of(loaded.tokenizer, loaded.name, loaded.folder, max_tokens, parsing)
        self._max_nodes = max(settings.max_nodes, self._drafters.costs.max_nodes)
        self._judge, self._gate = Judge(loaded.model, loaded.tokenizer, planner), Gate.shipped()
        self._pace = PromptPace(settings.budget, settings.full_prompt_s, longer)
        self._cold_prompt_s = settings.cold_prompt_s
        self._sessions = KVSessions(
            loaded.model, sessions, self._pace.note, self.passes.take_turn, owner_of=settings.owner_of
        )
        form = detect_edit_format(loaded.tokenizer.special, loaded.name)
        self._writer = EditWriter(loaded, planner, self._drafters, self._sessions, form) if form else None
        self._loaded, self._asked_nodes = loaded, settings.max_nodes
        workspaces = Workspaces(self._drafters, loaded.tokenizer, settings.workspace_bytes, parsing)
        super().__init__(planner, loaded.tokenizer, workspaces, parsing)

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """See `Completer`; the document's KV session stays as it is until the last event."""
        with self._sessions.pinned(request.document):
            yield from super().complete(request, cancel)

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Compute the cache for a request that may follow, make it exact, and load the grammar of its language.

        Raises:
            CancelledError: What is computed until then stays in the cache.
        """
        self._parsing.watch(cancel, request.document)
        with self._sessions.pinned(request.document):
            planned, prompt, session = self._plan(request)
            open_grammar(self._inside(planned, prompt), prompt.healed, self.grammars, self._parsing)
            session.prepare(prompt, request.cache, cancel)
            session.refresh(cancel)

    def snippets(self, request: CompletionRequest, cancel: CancelToken) -> tuple[ContextFile, ...]:
        """Return the snippets of a request's prompt, for an engine that has no workspaces of its own.

        Raises:
            CancelledError: While the document is parsed.
        """
        self._parsing.watch(cancel, request.document)
        budget = self._sessions.open(request.document).budget or self._pace.budget()
        return self._with_snippets(normalised(request), budget.context_tokens).context

    def next_edits(self, request: NextEditRequest, cancel: CancelToken) -> NextEdits:
        """Return what the user's last edits imply for the rest of the document; nothing if it cannot be parsed.

        Writing and judging have KV sessions of their own, so they leave the cache of the document's completions alone.

        Raises:
            CancelledError: Within one layer of a pass after `cancel`.
        """
        own = request.document + _NEXT_EDIT  # a bound that is exceeded here refuses no completion its grammar
        self._parsing.watch(cancel, own)
        session = self._sessions.open(own, in_background=True)
        with self._sessions.pinned(own), suppress(ParseLimitError):
            parts = self._judge, self._gate, session, self._parsing, cancel, self._writer
            return NextEdits(next_edits(request, *parts))
        return NextEdits()

    def held(self) -> Mapping[MemoryPart, Held]:
        """Return what the engine holds in memory, by part. May be called on any thread, while a request runs."""
        parts = super().held()
        return {
            **parts,
            MemoryPart.WEIGHTS: self.passes.held_weights(),
            MemoryPart.KV_SESSIONS: self._sessions.held(),
            MemoryPart.WORKSPACES: parts[MemoryPart.WORKSPACES] + Held.arrays(self._drafters.arrays()),
        }

    def close(self) -> None:
        """Save how often each kind of guess was right and the costs of steps, and end the parser's process."""
        self._parsing.close()
        keep_calibration(self._drafters, self._loaded.digest)
        keep_quicker_costs(self._loaded, self._asked_nodes, self._drafters.costs)

    def _close_documents(self, documents: Iterable[str]) -> set[str]:
        for document in documents:
            for end in ("", _NEXT_EDIT, WRITTEN):
                self._sessions.close(document + end)
        return self._sessions.languages()

    def _start(self, request: CompletionRequest, cancel: CancelToken, record: RunRecord) -> LocalTask:
        self._parsing.watch(cancel, request.document)
        planned, prompt, session = self._plan(request)
        if self._is_cold(prompt, planned.cache, session):
            prompt = self._shortened(planned)
        room = session.cache.capacity - len(prompt.tokens) - len(prompt.forced) - self._max_nodes
        planned = replace(self._inside(planned, prompt), max_tokens=min(planned.max_tokens, room))
        context = cursor_context(planned)
        plan = session.prepare(prompt, planned.cache, cancel, FIRST_STEP_TOKENS)
        record.prompt_ready(prompt, plan, session.longest_chunk_ms)
        grammar = open_grammar(planned, prompt.healed, self.grammars, self._parsing)
        replaced = replaced_lines(planned.history if planned.deleted_here else "", context, self._parsing)
        return LocalTask(
            tokenizer=self._tokenizer,
            request=planned,
            context=context,
            prompt=prompt,
            grammar=grammar,
            record=record,
            model=self.passes,
            session=session,
            drafters=self._drafters,
            replaced=replaced,
        )

    def _plan(self, request: CompletionRequest) -> tuple[CompletionRequest, Prompt, KVSession]:
        """Return the request with plain line feeds and snippets, its prompt, and the document's KV session.

        A session keeps its prompt budget while it holds tokens, because another budget would shift what is cached. It
        gets a smaller one if the memory has no room for such prompts of all documents in which somebody types.
        """
        session, inside = self._sessions.open(request.document), embedded(request)
        session.language = true_language(inside.language, inside.prefix, inside.suffix)
        tokens_of = partial(self._tokens_with, request)
        if session.budget is None or not session.tokens:
            session.budget = self._pace.budget(tokens_of)
        planned, prompt = self._laid_out(request, session.budget)
        if not session.tokens and len(prompt.tokens) > (most_tokens := self._sessions.tokens_each()):
            session.budget = self._pace.budget(tokens_of, most_tokens)
            planned, prompt = self._laid_out(request, session.budget)
        return planned, prompt, session

    def _is_cold(self, prompt: Prompt, cache_mode: CacheMode, session: KVSession) -> bool:
        """Return whether a prompt is mostly uncached, and computing it takes longer than a request may wait.

        Only the mode PIE gets short prompts, because growing from one to the full prompt leaves the cache inexact.
        """
        if cache_mode is not CacheMode.PIE or self._pace.seconds(len(prompt.tokens)) <= self._cold_prompt_s:
            return False
        computed = session.plan(prompt, cache_mode).computed
        return 2 * computed > len(prompt.tokens) and self._pace.seconds(computed) > self._cold_prompt_s
