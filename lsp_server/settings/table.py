"""The table of settings: type, default, bounds, scope and description of each.

It is their only source: `scripts/write_settings.py` generates docs/settings.md and the editors' declarations from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from completion.backend import GPU_MEMORY_SHARE, Backend
from completion.remote.address import EngineMode, Kind
from completion.request import Alternatives, CacheMode, GrammarMode, Layout, Mode
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.settings.client_profile import ItemRange
from lsp_server.settings.rows import Scope, Setting, rows_of, setting

Trigger = Literal["automatic", "manual"]
NextEditMode = Literal["auto", "manual", "off"]
OnBattery = Literal["same", "less"]
LogLevel = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of the language server. All sources may spell a key as `max_tokens` or `maxTokens`."""

    enabled: bool = setting("Whether draftline makes suggestions.", default=True)
    languages_off: tuple[str, ...] = setting(
        "Languages without suggestions, by the editor's language identifier.", default=()
    )
    trigger: Trigger = setting(
        "When suggestions are made: `automatic` while you type, `manual` only when you request one.",
        default="automatic",
    )
    next_edit: NextEditMode = setting(
        "When the edits are proposed that your last edits imply elsewhere in the file: `auto` in a pause, "
        "`manual` when you request one, `off` never.",
        default="auto",
    )
    known_names: bool = setting(
        "Whether names that your other language servers do not know become less likely after a dot.", default=True
    )
    in_comments: bool = setting("Whether there are automatic suggestions inside comments.", default=True)
    in_strings: bool = setting("Whether there are automatic suggestions inside strings and docstrings.", default=True)
    whole_lines: bool = setting(
        "Whether an automatic suggestion always reaches the end of its line or block. If not, it ends "
        "where what follows is probably wrong; when you accept it or type along, the rest appears as far as it is then "
        "likely. A manual request shows all of it.",
        default=False,
    )
    automatic_lines: int = setting(
        "Maximum number of lines of an automatic suggestion, blank ones not counted; 0 means no limit. "
        "If the text is incomplete there, as an `if` without its body, it appears only where it is very likely. A "
        "manual request gets the whole suggestion.",
        default=0,
        bounds=(0, 1000),
    )
    show_after_ms: int = setting(
        "Pause in typing, in milliseconds, before an automatic suggestion appears; 0 shows it as soon as "
        "it is generated. One that is on the screen stays while you type along it.",
        default=0,
        bounds=(0, 10_000),
    )
    model: str = setting(
        "The model: `auto`, the largest that is installed and quick enough on this machine; `default`, a "
        "packaged model's name, a hub id, or the whole path of a folder with safetensors or of a `.gguf` file.",
        default="auto",
        scope=Scope.MACHINE,
    )
    first_text_budget_ms: int = setting(
        'Time for the first text, in milliseconds, within which `model = "auto"` takes a model.',
        default=80,
        bounds=(1, 60_000),
        scope=Scope.MACHINE,
    )
    on_battery: OnBattery = setting(
        "How much work is done on battery: `same` as on mains; `less` takes a model with half of "
        "`first_text_budget_ms`, and generates nothing ahead.",
        default="less",
        scope=Scope.MACHINE,
    )
    backend: Backend = setting(
        "Implementation that runs the model; `auto` chooses the fastest one that the machine and the model support.",
        default="auto",
        scope=Scope.MACHINE,
    )
    threads: int = setting(
        "Number of CPU threads of the engine, from its next start; 0 lets the engine choose.",
        default=0,
        bounds=(0, 1024),
        scope=Scope.MACHINE,
    )
    gpu_memory_share: float = setting(
        "Share of a GPU's memory that the engine may take, from its next start; 0 leaves the GPU to other "
        "programs. The backend `auto` takes the most exact format of the weights that fits: bfloat16, 8 or 4 bits.",
        default=GPU_MEMORY_SHARE,
        bounds=(0, 1),
        scope=Scope.MACHINE,
    )
    engine_url: str = setting(
        "Address of a server that runs a model in place of this computer, or after it, for example "
        "`https://gpu.example:8080`. Text of the workspaces that you allow goes there.",
        default="",
        scope=Scope.MACHINE,
    )
    engine_kind: Kind = setting(
        "What listens at `engine_url`: a `llama-server` of llama.cpp or a `vllm`, whose tokenizer `model` "
        "names and which gets the text around the cursor, or a `draftline serve`, which gets the workspace, too.",
        default="llama-server",
        scope=Scope.MACHINE,
    )
    engine_mode: EngineMode = setting(
        "Who completes: `remote`, the server of `engine_url` alone, or `local_first`, the local model at "
        "once and a model server after it, where its text is better and in time.",
        default="remote",
        scope=Scope.MACHINE,
    )
    not_secret: tuple[str, ...] = setting(
        "Files and folders, by their whole paths, that are read although their names or contents look like "
        "secrets; `!` before one excepts it again. The longest one that contains a file counts.",
        default=(),
        scope=Scope.MACHINE,
        folders=True,
    )
    engine_send: tuple[str, ...] = setting(
        "Folders, by their whole paths, whose text may go to `engine_url`; `*` is every folder, and `!` "
        "before a folder forbids it. The longest one that contains a file counts. In other folders you are asked once.",
        default=(),
        scope=Scope.MACHINE,
        folders=True,
    )
    engine_model: str = setting(
        "Model whose tokenizer the server's model has, if that is not `model`: a name, or a folder with "
        "`tokenizer.json` and `config.json`.",
        default="",
        scope=Scope.MACHINE,
    )
    engine_token_file: str = setting("File with the token that the server wants.", default="", scope=Scope.MACHINE)
    engine_token_env: str = setting(
        "Environment variable with the token that the server wants.", default="", scope=Scope.MACHINE
    )
    engine_ca_file: str = setting(
        "File with the certificates (PEM) of the authority that signed the server's own; by default "
        "those of the system.",
        default="",
        scope=Scope.MACHINE,
    )
    engine_plain_http: bool = setting(
        "Whether text may go to a server on another machine unencrypted.", default=False, scope=Scope.MACHINE
    )
    idle_minutes: float = setting(
        "Minutes after which an engine without clients exits and frees its memory; counts from its next start.",
        default=10.0,
        bounds=(0.01, 100_000),
        scope=Scope.MACHINE,
    )
    debounce_ms: int = setting(
        "Pause after a keystroke before the server asks the engine for a suggestion, in milliseconds. A "
        "manual request does not wait.",
        default=60,
        bounds=(0, 10_000),
    )
    mode: Mode = setting(
        "How far a suggestion may reach: `line` to the end of the line, with the lines that complete what "
        "it opens, such as the body of an `if`; `block` to the end of the block; `auto` decides by the syntax at the "
        "cursor.",
        default=Mode.AUTO,
    )
    max_tokens: int = setting("Maximum length of a suggestion, in tokens.", default=128, bounds=(1, 4096))
    time_budget_ms: int = setting(
        "Maximum time for generating a suggestion, in milliseconds; 0 means no limit.", default=0, bounds=(0, 600_000)
    )
    suggestions: int = setting(
        "Number of suggestions to cycle through. A manual request gets two more.", default=3, bounds=(1, 10)
    )
    alternatives: Alternatives = setting(
        "How alternatives to the first suggestion are generated: `branches` takes another token where the "
        "model was least certain; `superposed` drafts all of them together, from rows that they share.",
        default=Alternatives.BRANCHES,
    )
    streaming: bool = setting(
        "Whether the server sends a suggestion while it is generated (`draftline/partialCompletion`). If "
        "not, a request is answered with the first line of a block once that is certain, and a manual one with the "
        "first suggestion; the same request again gets all of it.",
        default=False,
        scope=Scope.CLIENT,
    )
    item_range: ItemRange = setting(
        "What a suggestion replaces after the cursor: `cursor` nothing; `replaced` the closers that its "
        "text contains; `line` the rest of the line, which its text then ends with; `auto` what the editor is known to "
        "show and accept correctly.",
        default=ItemRange.AUTO,
        scope=Scope.CLIENT,
    )
    layout: Layout | Literal["auto"] = setting(
        "Order of prefix and suffix in the prompt; `auto` is the model's own order.", default="auto"
    )
    grammar: GrammarMode = setting(
        "What the language's grammar does: `strict` keeps a suggestion from breaking the file; `off` disables it.",
        default=GrammarMode.STRICT,
    )
    cache: CacheMode = setting(
        "How the engine reuses cached keys and values after an edit: `pie` re-encodes text that moved; "
        "`exact` keeps only the unchanged beginning of the prompt; `off` keeps nothing.",
        default=CacheMode.PIE,
    )
    drafting: bool = setting(
        "Whether the engine drafts tokens ahead. Drafts change the speed, never the text.", default=True
    )
    max_file_mb: float = setting(
        "Maximum size of a document, in megabytes; larger ones get no suggestions.", default=2.0, bounds=(0.001, 1000)
    )
    index_files: int = setting(
        "Maximum number of workspace files that the drafters learn from; 0 disables this.",
        default=2000,
        bounds=(0, 1_000_000),
    )
    gate: Strictness = setting(
        "How strictly the server hides automatic suggestions that you would hardly accept: `off` hides "
        "none, `high` hides the most; a share such as `0.6` shows what was right so often where it was measured "
        "(docs/quality.md). The result of a manual request is always shown.",
        default=Strictness.LOW,
    )
    quiet_ms: int = setting(
        "Milliseconds without automatic suggestions after you dismiss one or delete other text than "
        "indentation, also of what is on the screen already; the next character that you type ends those after a "
        "deletion.",
        default=1000,
        bounds=(0, 60_000),
    )
    ahead: bool = setting(
        "Whether the suggestion after the one on the screen is generated while you read, so that it is "
        "there as soon as you accept.",
        default=True,
    )
    prepare_ms: int = setting(
        "Pause in typing, in milliseconds, after which the engine prepares its cache for the next request; "
        "0 disables this.",
        default=1500,
        bounds=(0, 600_000),
    )
    telemetry: bool = setting(
        "Whether the server counts shown and accepted suggestions in a database on this machine. It never "
        "stores source text or file names, and sends nothing.",
        default=True,
        scope=Scope.USER,
    )
    log_level: LogLevel = setting(
        "Minimum severity of the messages that the server writes to standard error. They never contain source text.",
        default="warning",
        scope=Scope.MACHINE,
    )


DEFAULTS: Final = Settings()

# Settings that change what is suggested or when, for each request. Telemetry records them, so they can be compared.
COMPARABLE = (
    "mode", "max_tokens", "time_budget_ms", "suggestions", "layout", "grammar", "cache", "drafting", "debounce_ms",
    "gate", "whole_lines", "automatic_lines", "show_after_ms", "ahead",
)  # fmt: skip

SETTINGS: Final[Mapping[str, Setting]] = rows_of(Settings)
