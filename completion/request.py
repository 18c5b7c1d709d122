"""The frozen values that pass between the stages of a request, from the editor's question to the last event.

Only the standard library is imported here, so that the language server can use these types without the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

MAX_TOKENS_LIMIT = 4096
"""Highest `max_tokens` that a request may ask for."""


class Layout(StrEnum):
    """Order of prefix P and suffix S around the FIM tokens.

    Source: "Efficient Training of Language Models to Fill in the Middle", section 3 (PSM and SPM there).
    """

    PREFIX_FIRST = "prefix_first"  # PRE P SUF S MID
    SUFFIX_FIRST = "suffix_first"  # PRE SUF S MID P   ("SPM variant 2")
    SUFFIX_BEFORE_PREFIX = "suffix_before_prefix"  # SUF S PRE P MID (llama.cpp's spm_infill)
    PREFIX_ONLY = "prefix_only"  # P


class Mode(StrEnum):
    """How far a completion may reach."""

    AUTO = "auto"
    LINE = "line"
    BLOCK = "block"


class GrammarMode(StrEnum):
    """What the language's grammar may do to a completion."""

    OFF = "off"
    PRUNE = "prune"
    STRICT = "strict"


class CacheMode(StrEnum):
    """How cached keys and values are reused after an edit."""

    PIE = "pie"
    EXACT = "exact"
    OFF = "off"


class Alternatives(StrEnum):
    """Where suggestions beside the first come from."""

    BRANCHES = "branches"  # exact texts that take another token where the model was least certain
    SUPERPOSED = "superposed"  # drafts of one pass over mixed embeddings, scored exactly in the end


class StopReason(StrEnum):
    """Why a completion ended."""

    STOP_TOKEN = "stop_token"
    LINE_END = "line_end"
    BLOCK_END = "block_end"
    SUFFIX_OVERLAP = "suffix_overlap"
    REPETITION = "repetition"
    UNLIKELY = "unlikely"
    MAX_TOKENS = "max_tokens"
    MAX_BYTES = "max_bytes"
    TIME_BUDGET = "time_budget"
    GRAMMAR = "grammar"


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A piece of another file of the workspace that the model may see, most useful last."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is drawn. Temperature 0 is greedy, and the other fields are then without effect."""

    temperature: float = 0.0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One question to the engine: what belongs between `prefix` and `suffix`?

    Attributes:
        prefix: Text of the document before the cursor.
        suffix: Text of the document after the cursor.
        language: LSP language identifier ("python", "typescriptreact", ...); "" if unknown.
        path: Path within the workspace, for the model's file header; "" if unknown.
        repository: Name of the workspace, for the model's repository header; "" if unknown.
        document: Opaque key of the document: requests of one document share one KV session.
        workspace: Opaque key of the workspace: drafts come from this workspace's index only.
        context: Pieces of other files, in a stable order.
        outline: Whether the model sees the imports and open scopes of a long document that lie above its window.
        suggestions: How many different suggestions are wanted; the first is always the plain one, unless that comes to
            nothing and a key asked: then the next likely text takes its place.
        alternatives: Where those behind the first come from.
        max_tokens: Upper bound of generated tokens.
        max_bytes: Upper bound of generated UTF-8 bytes.
        time_budget_ms: Decoding stops at the next step after this long; 0 is no bound.
        layout: Order of prefix and suffix; None is the model's own.
        drafting: Whether drafters propose tokens (they change speed, never text).
        healing: Whether the run before the cursor is taken off the prompt and forced back.
        filters: Whether the filters of `completion.postprocess` have the last word.
        invoked: The user asked by a key: nothing is held back for where the cursor stands, or given up as unlikely.
    """

    prefix: str
    suffix: str = ""
    language: str = ""
    path: str = ""
    repository: str = ""
    document: str = ""
    workspace: str = ""
    context: tuple[ContextFile, ...] = ()
    outline: bool = True
    mode: Mode = Mode.AUTO
    suggestions: int = 1
    alternatives: Alternatives = Alternatives.BRANCHES
    max_tokens: int = 128
    max_bytes: int = 4096
    time_budget_ms: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    layout: Layout | None = None
    cache: CacheMode = CacheMode.PIE
    grammar: GrammarMode = GrammarMode.STRICT
    drafting: bool = True
    healing: bool = True
    filters: bool = True
    invoked: bool = False


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a finished request did and what it cost. Times are in milliseconds from the engine's receipt."""

    prompt_tokens: int = 0
    kept_tokens: int = 0
    shifted_tokens: int = 0
    computed_tokens: int = 0
    generated_tokens: int = 0
    steps: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    accepted_by_drafter: dict[str, int] = field(default_factory=dict)
    grammar_checks: int = 0
    grammar_rejections: int = 0
    grammar_off_reason: str = ""
    queue_ms: float = 0.0
    prompt_ms: float = 0.0
    longest_step_ms: float = 0.0
    first_text_ms: float = 0.0
    drafting_ms: float = 0.0
    grammar_ms: float = 0.0
    decode_ms: float = 0.0
    total_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One text offered at the cursor.

    Attributes:
        text: What to insert; while streaming it only ever grows.
        replace_after: How many characters (code points) after the cursor the text replaces.
        log_probability: Sum over the text's tokens, natural logarithm.
        token_log_probabilities: One for each generated token, given that it agrees with what stands before the cursor.
        pieces: (drafter name, or "model"; text) in order: who guessed what.
    """

    text: str
    replace_after: int = 0
    log_probability: float = 0.0
    token_log_probabilities: tuple[float, ...] = ()
    pieces: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CompletionEvent:
    """One message of the stream: the suggestions so far; the last one has `done`.

    Attributes:
        dropped: Named reason when a finished request shows nothing; "" otherwise.
        statistics: As of then; none while the first suggestion grows.
        whole: So many of the suggestions, from the first on, are complete; the next one may still grow.
    """

    suggestions: tuple[Suggestion, ...]
    done: bool = False
    stop_reason: StopReason | None = None
    dropped: str = ""
    statistics: Statistics | None = None
    whole: int = 0


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A file of the open workspace as it is now; `open` says that it is open in an editor."""

    path: str
    text: str
    open: bool = False


@dataclass(frozen=True, slots=True)
class Closing:
    """What a client no longer uses: nothing of it stays in memory unless another client uses it.

    Attributes:
        documents: Keys as in `CompletionRequest.document`.
        workspaces: Keys as in `CompletionRequest.workspace`.
    """

    documents: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkspaceUpdate:
    """What changed in a workspace since the last update: feeds the drafters' index, never the model directly.

    Attributes:
        workspace: Opaque key, the same as in `CompletionRequest.workspace`.
        changed: New and changed files, whole.
        removed: Paths of files that are gone or may no longer be used.
    """

    workspace: str
    changed: tuple[WorkspaceFile, ...] = ()
    removed: tuple[str, ...] = ()
