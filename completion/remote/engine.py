"""The engine over a model server: the stages of the local engine without its weights, cache and drafts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from completion.cache.kv_plan import CachePlan
from completion.cancellation import CancelToken
from completion.completer import Completer
from completion.decoding.constraints import Constraints, ConstraintState, open_grammar
from completion.decoding.run_record import RunRecord
from completion.decoding.task import Task
from completion.edits import NextEditRequest, NextEdits
from completion.ending.context import cursor_context
from completion.errors import ConfigurationError, PromptTooLongError, RemoteServerError
from completion.model.store.model_store import prepare
from completion.model.tokenizer import CodeTokenizer
from completion.paths import model_path
from completion.progress import Progress
from completion.prompt.fim_format import detect_format
from completion.prompt.healing import MAX_RUN_BYTES
from completion.prompt.pace import PromptBudget
from completion.prompt.planner import Prompt, PromptPlanner
from completion.remote.address import RemoteAddress
from completion.remote.connection import Connection
from completion.remote.decoder import RemoteDecoder
from completion.remote.llama_server import LlamaServer
from completion.remote.model_server import ModelServer, ServerFacts
from completion.remote.server_cache import ServerCache
from completion.remote.vllm import Vllm
from completion.request import CompletionEvent, CompletionRequest
from completion.syntax.embedded import embedded
from completion.syntax.languages import true_language
from completion.syntax.parsing import IN_PROCESS, Parsing
from completion.workspace.workspaces import Workspaces

_KINDS: Mapping[str, type[ModelServer]] = {"llama-server": LlamaServer, "vllm": Vllm}
_MIN_GENERATED_TOKENS = 64 + MAX_RUN_BYTES  # positions of the server's context that a prompt leaves free

QUIET_S = 20.0
"""Time without a reply after which a server is asked for its model before the next request, in seconds: shorter than a
server takes to start with another one, and longer than pauses in typing, so that the question delays few requests."""


@dataclass(frozen=True, slots=True)
class RemoteTask(Task):
    """A request in progress on a model server."""

    server: ModelServer
    cache: ServerCache

    def source(
        self, constraints: Constraints, written: Sequence[int], state: ConstraintState, *, is_first: bool
    ) -> RemoteDecoder:
        """See `Task`."""
        return RemoteDecoder(
            server=self.server,
            prompt=[*self.prompt.tokens, *written],
            constraints=constraints,
            sampling=self.request.sampling,
            max_tokens=self.request.max_tokens + len(self.prompt.forced) - len(written),
            stop_ids=self.tokenizer.stop_ids,
            state=state,
            note_cached=self._sent() if is_first else lambda _: None,
        )

    def _sent(self) -> Callable[[int | None], None]:
        """Return a function that records how the server's cache served the prompt."""
        computed = self.cache.sent(self.request.document, self.prompt.tokens)

        def note_cached(told: int | None) -> None:
            cached, slots = computed(told), np.arange(len(self.prompt.tokens), dtype=np.int32)
            self.record.prompt_ready(self.prompt, CachePlan(np.where(slots < cached, slots, -1), slots[cached:]), 0.0)

        return note_cached


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model server whose tokens are known to be those of a local tokenizer.

    Attributes:
        address: Its address, for messages.
        folder: Folder of the tokenizer's files.
    """

    server: ModelServer
    facts: ServerFacts
    address: str
    tokenizer: CodeTokenizer
    folder: Path

    @classmethod
    def connect(
        cls,
        address: RemoteAddress,
        spec: str,
        progress: Progress,
        cancel: CancelToken,
        known: tuple[Path, CodeTokenizer] | None = None,
    ) -> RemoteModel:
        """Read the tokenizer's files, and compare them with the server's.

        `spec` is what `read_tokenizer` takes, if the address does not name it; `known` is what it returned before.

        Raises:
            ConfigurationError: The settings cannot be used.
            ModelError: The tokenizer's files cannot be found or read, or its family is unknown.
            RemoteServerError: The server cannot be reached, or has other tokens.
        """
        if address.kind not in _KINDS:
            raise ConfigurationError(
                f"At {address.shown()} is an engine host, to which only editors can connect, and without a local model."
            )
        connection = Connection(address)
        progress(f"Connecting to {connection.shown}", 0.1)
        folder, tokenizer = known or read_tokenizer(address.model or spec, progress)
        server = _KINDS[address.kind](connection, tokenizer)
        facts = server.facts(cancel)
        progress(f"Comparing the tokens of {facts.model} at {connection.shown}", 0.5)
        server.check_tokenizer(detect_format(tokenizer.special, facts.model).required(), cancel)
        return cls(server, facts, connection.shown, tokenizer, folder)

    def compared_again(self, cancel: CancelToken) -> RemoteModel:
        """Return this with what the server says about itself now, after a comparison of its tokens.

        Raises:
            RemoteServerError: The server cannot be reached, or has other tokens.
        """
        facts = self.server.facts(cancel)
        self.server.check_tokenizer(detect_format(self.tokenizer.special, facts.model).required(), cancel)
        return replace(self, facts=facts)


def read_tokenizer(spec: str, progress: Progress) -> tuple[Path, CodeTokenizer]:
    """Return the folder of a model's files, and its tokenizer.

    `spec` is a folder with tokenizer.json and config.json, or a model as `model_store.prepare` takes it.

    Raises:
        ModelError: The files cannot be found or read.
    """
    folder = model_path(spec)
    if folder is None or not (folder / "tokenizer.json").is_file():
        folder = prepare(spec, progress).folder
    return folder, CodeTokenizer.from_folder(folder)


class RemoteEngine(Completer):
    """Completes requests with the model of a server. Drafts, PIE and superposed alternatives need a local model.

    Args:
        full_prompt_s: Maximum time of a prompt that is prepared in advance, in seconds.
        cold_prompt_s: Maximum time of a prompt that a request waits for, in seconds; a shorter prompt takes its place.

    Attributes:
        remote: The server's model, as it was when its tokens were last compared.
    """

    def __init__(
        self,
        remote: RemoteModel,
        parsing: Parsing = IN_PROCESS,
        full_prompt_s: float = math.inf,
        cold_prompt_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        planner, workspaces = _planner(remote, parsing), Workspaces(None, remote.tokenizer, parsing=parsing)
        super().__init__(planner, remote.tokenizer, workspaces, parsing)
        self.remote = remote
        self._new_cache = partial(ServerCache, PromptBudget(), full_prompt_s, cold_prompt_s)
        self._cache, self._clock = self._new_cache(), clock
        self._known_s = clock()  # when the server last had the model that was compared

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """See `Completer`. A `RemoteServerError` can also say that the server has another model now."""
        with self._known_server(cancel):
            yield from super().complete(request, cancel)

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Make the server compute the prompt of a request that may follow, and load the grammar of its language.

        Raises:
            CancelledError: At once after `cancel`.
            RemoteServerError: The server failed.
        """
        with self._known_server(cancel):
            self._parsing.watch(cancel, request.document)
            planned, prompt = self._plan(request)
            open_grammar(self._inside(planned, prompt), prompt.healed, self.grammars, self._parsing)
            computed = self._cache.sent(request.document, prompt.tokens)
            self.remote.server.prepare(prompt.tokens, cancel)
            computed(None)

    def next_edits(self, request: NextEditRequest, cancel: CancelToken) -> NextEdits:  # noqa: ARG002 - see `EngineLike`
        """Return nothing: judging an edit needs the log-probabilities of a given text, which a server does not tell."""
        return NextEdits()

    def close(self) -> None:
        """End the parser's process."""
        self._parsing.close()

    @contextmanager
    def _known_server(self, cancel: CancelToken) -> Iterator[None]:
        """Compare the tokens again before a request if the server may have another model: it failed, or says so.

        A server that is replaced is away for a while. So it fails meanwhile, or gets no request for `QUIET_S`.
        """
        if self._clock() - self._known_s > QUIET_S:
            if self._known_s == -math.inf or self.remote.server.facts(cancel) != self.remote.facts:
                self._known_s = -math.inf
                if (remote := self.remote.compared_again(cancel)) != self.remote:
                    self.remote, self._cache = remote, self._new_cache()
                    self._planner = _planner(remote, self._parsing)
            self._known_s = self._clock()
        try:
            yield
        except RemoteServerError:
            self._known_s = -math.inf
            raise
        self._known_s = self._clock()

    def _close_documents(self, documents: Iterable[str]) -> set[str]:
        self._cache.close(documents)
        return self._cache.languages

    def _start(self, request: CompletionRequest, cancel: CancelToken, record: RunRecord) -> RemoteTask:
        self._parsing.watch(cancel, request.document)
        planned, prompt = self._plan(request)
        if self._cache.is_cold(request.document, prompt.tokens):
            prompt = self._shortened(planned)
        room = self.remote.facts.context_tokens - len(prompt.tokens) - len(prompt.forced)
        planned = replace(self._inside(planned, prompt), max_tokens=min(planned.max_tokens, room))
        context = cursor_context(planned)
        grammar = open_grammar(planned, prompt.healed, self.grammars, self._parsing)
        return RemoteTask(
            tokenizer=self._tokenizer,
            request=planned,
            context=context,
            prompt=prompt,
            grammar=grammar,
            record=record,
            server=self.remote.server,
            cache=self._cache,
        )

    def _plan(self, request: CompletionRequest) -> tuple[CompletionRequest, Prompt]:
        """Return the request with plain line feeds and snippets, and its prompt.

        Raises:
            PromptTooLongError: The server has no room for it.
        """
        inside = embedded(request)
        self._cache.open(request.document, true_language(inside.language, inside.prefix, inside.suffix))
        planned, prompt = self._laid_out(request, self._cache.budget(request.document))
        if self._cache.renew_budget(request.document, prompt.tokens, partial(self._tokens_with, request)):
            planned, prompt = self._laid_out(request, self._cache.budget(request.document))
        if len(prompt.tokens) >= (most := self.remote.facts.context_tokens):
            raise PromptTooLongError(f"The prompt has {len(prompt.tokens)} tokens; the server has room for {most}.")
        return planned, prompt


def _planner(remote: RemoteModel, parsing: Parsing) -> PromptPlanner:
    max_tokens = remote.facts.context_tokens - _MIN_GENERATED_TOKENS
    return PromptPlanner.of(remote.tokenizer, remote.facts.model, remote.folder, max_tokens, parsing)
