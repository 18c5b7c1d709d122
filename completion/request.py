"""Frozen values that pass between the stages of a request; light, so that the language server can use them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from completion.language_ids import OfLanguage

MAX_TOKENS_LIMIT = 4096
"""Maximum of a request's `max_tokens`."""
MAX_NAMES, MAX_NAME_CHARACTERS = 2_000, 200
"""Maximum number of a request's `names`, and the length of one: more names than of any type say little."""
SUPERSEDED = "superseded"
"""`CompletionEvent.dropped` of a request that ended because a newer one of its document arrived."""
WARM_UP = "\0warm-up"
"""Document of the request that an engine makes to itself. It is forgotten with the first document that is closed."""


class Layout(StrEnum):
    """Order of prefix P and suffix S around the FIM tokens.

    Source: "Efficient Training of Language Models to Fill in the Middle", section 3 (PSM and SPM there).
    """

    PREFIX_FIRST = "prefix_first"  # PRE P SUF S MID
    SUFFIX_FIRST = "suffix_first"  # PRE SUF S MID P   ("SPM variant 2")
    SUFFIX_BEFORE_PREFIX = "suffix_before_prefix"  # SUF S PRE P MID (llama.cpp's spm_infill)
    PREFIX_ONLY = "prefix_only"  # P


class Mode(StrEnum):
    """Extent of a completion: one line, a block, or what the syntax at the cursor suggests."""

    AUTO = "auto"
    LINE = "line"
    BLOCK = "block"


class GrammarMode(StrEnum):
    """Use of the language's grammar: none, or a constraint on the completion."""

    OFF = "off"
    STRICT = "strict"


class CacheMode(StrEnum):
    """Reuse of cached keys and values after an edit."""

    PIE = "pie"
    EXACT = "exact"
    OFF = "off"


class Alternatives(StrEnum):
    """Source of the suggestions besides the first."""

    BRANCHES = "branches"  # each takes another likely token than the first suggestion did, and goes on from there
    SUPERPOSED = "superposed"  # drafts that share the rows of mixed embeddings


class StopReason(StrEnum):
    """Reason why a completion ended."""

    STOP_TOKEN = "stop_token"
    LINE_END = "line_end"
    BLOCK_END = "block_end"
    SUFFIX_OVERLAP = "suffix_overlap"
    REPETITION = "repetition"
    UNLIKELY = "unlikely"
    MAX_TOKENS = "max_tokens"
    MAX_BYTES = "max_bytes"
    MAX_LINES = "max_lines"
    TIME_BUDGET = "time_budget"
    GRAMMAR = "grammar"


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A snippet: a part of another file of the workspace, for the prompt."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of a conversation; `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters of drawing a token. With temperature 0, decoding is greedy and the other fields have no effect."""

    temperature: float = 0.0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class CompletionRequest(OfLanguage):
    """A request for the text between `prefix` and `suffix`, or for the model's turn in a conversation.

    Attributes:
        prefix: Text of the document before the cursor; in a conversation, the text that the model's turn starts with.
        suffix: Text of the document after the cursor.
        language: LSP language identifier, or another name ("sh", "yaml.ansible"), which becomes one; "" if unknown.
        path: Path within the workspace, for the model's file header; "" if unknown.
        repository: Name of the workspace, for the model's repository header; "" if unknown.
        document: Opaque key of the document, which the host tells apart by client. Its requests share a KV session.
        workspace: Opaque key of the workspace. Drafts come from this workspace's index only.
        messages: Conversation that the model answers; `completion.instruct.instruct_request` makes such requests.
        last_line: Start of the line with which the turn of a conversation ends, and which it includes; "" for none.
        context: Snippets of other files in a stable order, the most useful last; empty to let the engine choose them.
        history: What the user changed in the document, as hunks that start with a line `@@`, the latest last.
        deleted_here: Whether the last of these hunks is what was deleted at the cursor.
        outline: Whether the prompt contains the imports and open scopes of a long document above its window.
        names: Names that the editor's language servers know at the cursor; other names become less likely there.
        suggestions: Maximum number of suggestions. The first is the one of plain decoding. If that one is dropped in a
            manual request, or because it repeats the lines below, an alternative takes its place.
        max_tokens: Maximum number of generated tokens, without those of the healed run.
        max_bytes: Maximum number of generated UTF-8 bytes.
        max_lines: Maximum number of lines with text; 0 for no bound.
        time_budget_ms: Time after which decoding stops at the next step; 0 for no bound.
        layout: Order of prefix and suffix; None for the model's own.
        drafting: Whether drafters guess tokens. They change the speed, and no text of int8 or q4 with the cache mode
            EXACT. In bfloat16 and float32, logits of more rows round otherwise, so the text may differ at a near tie;
            with PIE it depends on what earlier requests left in the cache.
        healing: Whether the run before the cursor is taken off the prompt and forced as the start of the output.
        search: Whether the first suggestion in line mode is the likeliest line that a search finds, not a greedy one.
        filters: Whether the filters of `completion.ending` apply.
        invoked: Whether the request is manual: no rule about the cursor's position hides its suggestion, and the first
            suggestion never ends early as unlikely.
        in_comments: Whether a cursor inside a comment gets suggestions.
        in_strings: Whether a cursor inside a string gets suggestions.
        next_line: Whether the suggestion may be of the next line, after its line break, if this line gets nothing; that
            of a manual request may.
        order: Place among the requests of the document's client, in which they may not arrive: a request ends none of a
            higher order. 0 in requests that count by their arrival.
        ahead: Whether nobody waits for it yet: it runs after all other requests, and each of them cancels it.
        remote: Whether the text may go to the model server beside a local model. Without a local model it goes there.
        tells_greedy: Whether events have `CompletionEvent.greedy`.
    """

    prefix: str
    suffix: str = ""
    language: str = ""
    path: str = ""
    repository: str = ""
    document: str = ""
    workspace: str = ""
    messages: tuple[Message, ...] = ()
    last_line: str = ""
    context: tuple[ContextFile, ...] = ()
    history: str = ""
    deleted_here: bool = False
    outline: bool = True
    names: tuple[str, ...] = ()
    mode: Mode = Mode.AUTO
    suggestions: int = 1
    alternatives: Alternatives = Alternatives.BRANCHES
    max_tokens: int = 128
    max_bytes: int = 4096
    max_lines: int = 0
    time_budget_ms: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    layout: Layout | None = None
    cache: CacheMode = CacheMode.PIE
    grammar: GrammarMode = GrammarMode.STRICT
    drafting: bool = True
    healing: bool = True
    search: bool = True
    filters: bool = True
    invoked: bool = False
    in_comments: bool = True
    in_strings: bool = True
    next_line: bool = False
    order: int = 0
    ahead: bool = False
    remote: bool = False
    tells_greedy: bool = False


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts and times of a request. `prompt_ms`, `first_text_ms` and `total_ms` start when the engine receives it."""

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
    """A text that is offered at the cursor.

    Attributes:
        text: Text to insert; while it streams it only grows.
        replace_after: Number of characters (code points) after the cursor that the text replaces.
        log_probability: Sum of the log-probabilities of the text's tokens (natural logarithm).
        token_log_probabilities: Log-probability of each token among those that agree with the text before the cursor.
        ends: For the end of each token and line within the text, the number of characters up to there, and the
            log-probability that the text starts with these. Empty where a filter changed more than the end of the text.
        pieces: Parts of the text in order, each with the name of the drafter that guessed it, or "model".
        line: Number of characters of a growing block up to the end of its first complete line, with what that opens; 0
            while there is none.
    """

    text: str
    replace_after: int = 0
    log_probability: float = 0.0
    token_log_probabilities: tuple[float, ...] = ()
    ends: tuple[tuple[int, float], ...] = ()
    pieces: tuple[tuple[str, str], ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class CompletionEvent:
    """One event of the stream: the suggestions so far.

    Attributes:
        stop_reason: Reason why the first suggestion ended; None before the last event.
        dropped: Reason why a finished request has no suggestion; "" otherwise.
        statistics: Counts and times so far; None while the first suggestion grows.
        whole: Number of complete suggestions, from the first on; the next one may still grow. A model server may go on
            with the first one until `done`, if the request allows `remote`.
        greedy: Text of greedy decoding so far, not for the screen, while that of a request `tells_greedy` grows.
    """

    suggestions: tuple[Suggestion, ...]
    done: bool = False
    stop_reason: StopReason | None = None
    dropped: str = ""
    statistics: Statistics | None = None
    whole: int = 0
    greedy: str = ""


@dataclass(frozen=True, slots=True)
class WorkspaceFile(ContextFile):
    """Current text of a file of the workspace; `open` says whether it is open in an editor."""

    open: bool = False


@dataclass(frozen=True, slots=True)
class Closing:
    """Documents and workspaces that a client no longer uses, by their keys as in `CompletionRequest`.

    The host frees those that no other client uses.
    """

    documents: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkspaceUpdate:
    """Changes of a workspace since the last update, for the drafters' index and the choice of snippets.

    Attributes:
        workspace: Opaque key, the same as in `CompletionRequest.workspace`.
        changed: New and changed files with their whole text.
        removed: Paths of files that were deleted or may no longer be read.
    """

    workspace: str
    changed: tuple[WorkspaceFile, ...] = ()
    removed: tuple[str, ...] = ()
