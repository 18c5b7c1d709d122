"""All settings as one typed object, merged from the editor, the project's file and the user's file."""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types as python_types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from platformdirs import PlatformDirs

from completion.backend import Backend
from completion.errors import ConfigurationError
from completion.request import Alternatives, CacheMode, GrammarMode, Layout, Mode
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.workspace_reader import read_inside, read_named

PROJECT_FILE = ".draftline.toml"
_FILE_BYTES = 64 * 1024

LogLevel = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of the language server. A file writes `max_tokens`, an editor may also write `maxTokens`.

    Attributes:
        enabled: Whether anything is suggested at all.
        languages_off: LSP language identifiers without suggestions.
        model: "default", a folder, a GGUF file, or a hub id.
        backend: How the model is computed; "auto" picks by device.
        threads: CPU threads of the engine; 0 lets it choose.
        idle_minutes: The engine gives its memory back this long after its last client left.
        debounce_ms: Pause after a key before the engine is asked; an invoked request does not wait.
        mode: How far a suggestion may reach: to the line's end, over a block, or as fits the place.
        max_tokens: Upper bound of a suggestion's length.
        time_budget_ms: Upper bound of the time spent on a suggestion; 0 is no bound.
        suggestions: How many different suggestions there are to cycle through, some more where asked for by a key.
        alternatives: Where those behind the first come from.
        streaming: Whether text is sent while it grows (`draftline/partialCompletion`).
        layout: Order of the text before and after the cursor for the model; "auto" is the model's own.
        grammar: What the language's grammar may do to a suggestion.
        cache: How the engine reuses its cache after an edit.
        drafting: Whether the engine guesses ahead; changes speed only.
        max_file_mb: Larger documents get no suggestions.
        index_files: How many files of the workspace the drafters may learn from; 0 switches that off.
        gate: How much is held back of what will hardly be accepted; what is asked for by a key always shows.
        quiet_ms: No automatic suggestion for this long after one was accepted or dismissed, or text was deleted.
        prepare_ms: Rest after which the engine's cache is made ready for what may be typed next; 0 switches that off.
        telemetry: Whether counts are kept in a local database; text never is.
        log_level: What is written to standard error; never source text.
    """

    enabled: bool = True
    languages_off: tuple[str, ...] = ()
    model: str = "default"
    backend: Backend = "auto"
    threads: int = 0
    idle_minutes: float = 10.0
    debounce_ms: int = 60
    mode: Mode = Mode.AUTO
    max_tokens: int = 128
    time_budget_ms: int = 0
    suggestions: int = 3
    alternatives: Alternatives = Alternatives.BRANCHES
    streaming: bool = False
    layout: Layout | Literal["auto"] = "auto"
    grammar: GrammarMode = GrammarMode.STRICT
    cache: CacheMode = CacheMode.PIE
    drafting: bool = True
    max_file_mb: float = 2.0
    index_files: int = 2000
    gate: Strictness = Strictness.NORMAL
    quiet_ms: int = 1000
    prepare_ms: int = 1500
    telemetry: bool = True
    log_level: LogLevel = "warning"


DEFAULTS = Settings()

# A repository that was cloned a moment ago must not choose programs, models or what is recorded.
_NOT_FROM_PROJECT = frozenset({
    "model", "backend", "threads", "idle_minutes", "telemetry", "log_level", "streaming",
})  # fmt: skip
# Inclusive bounds of numbers.
_BOUNDS: dict[str, tuple[float, float]] = {
    "threads": (0, 1024),
    "idle_minutes": (0.01, 100_000),
    "debounce_ms": (0, 10_000),
    "max_tokens": (1, 4096),
    "time_budget_ms": (0, 600_000),
    "suggestions": (1, 10),
    "max_file_mb": (0.001, 1000),
    "index_files": (0, 1_000_000),
    "quiet_ms": (0, 60_000),
    "prepare_ms": (0, 600_000),
}
# Settings that change what is suggested or when, request by request: they can be compared, and are recorded.
COMPARABLE = (
    "mode", "max_tokens", "time_budget_ms", "suggestions", "layout", "grammar", "cache", "drafting", "debounce_ms",
    "gate",
)  # fmt: skip
_TYPES = get_type_hints(Settings)
_NAMES = {name.replace("_", "").lower(): name for name in _TYPES}


@dataclass(frozen=True, slots=True)
class Source:
    """One place that settings come from.

    Attributes:
        name: Named in complaints: "initializationOptions", a file's path, ...
        values: Keys as written there.
        trusted: False for a project's file, which may not set everything.
    """

    name: str
    values: Mapping[str, Any]
    trusted: bool = True


def merge(sources: Sequence[Source]) -> tuple[Settings, list[str]]:
    """Combine sources, later ones win; a value that cannot be used is left out.

    Returns:
        The settings, and a sentence for each complaint.
    """
    chosen: dict[str, Any] = {}
    complaints: list[str] = []
    for source in sources:
        for key, value in source.values.items():
            try:
                name = _known_name(key, source)
                chosen[name] = _checked(name, value, source, key)
            except ConfigurationError as error:
                complaints.append(str(error))
    return dataclasses.replace(DEFAULTS, **chosen), complaints


def read_file(path: Path, project: Path | None) -> tuple[Source | None, list[str]]:
    """Read a TOML file of settings; a file that is not there is no source, a broken one is a complaint.

    Args:
        path: The file.
        project: The folder whose project file it is; None for the user's own file.
    """
    try:
        content = read_inside(project, path, _FILE_BYTES) if project else read_named(path, _FILE_BYTES)
        return Source(str(path), tomllib.loads(content.decode("utf-8")), trusted=project is None), []
    except FileNotFoundError:
        return None, []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return None, [f"{path} cannot be read ({error}). Its settings are left out."]


def user_file() -> Path:
    """Where a user's own settings file lies."""
    return PlatformDirs("draftline", appauthor=False).user_config_path / "config.toml"


def load(user: Path, folders: Sequence[Path], editor: Sequence[Source]) -> tuple[Settings, list[str]]:
    """Merge the user's file, the folders' project files and what the editor said, in this order."""
    sources: list[Source] = []
    complaints: list[str] = []
    for path, project in [(user, None), *((folder / PROJECT_FILE, folder) for folder in folders)]:
        source, found = read_file(path, project)
        complaints += found
        if source:
            sources.append(source)
    settings, found = merge([*sources, *editor])
    return settings, complaints + found


def with_text(settings: Settings, name: str, text: str) -> Settings:
    """Settings with one value as it is typed in a terminal: `line`, `60`, `false`.

    Raises:
        ConfigurationError: The setting does not take this value.
    """
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:  # a bare word
        value = text
    return dataclasses.replace(settings, **{name: _checked(name, value, Source(f"{name}={text}", {}), name)})


def _known_name(key: str, source: Source) -> str:
    folded = key.replace("_", "").replace("-", "").lower()
    name = _NAMES.get(folded)
    if name is None:
        nearest = difflib.get_close_matches(folded, _NAMES, n=1, cutoff=0.0)[0]
        raise ConfigurationError(f'{source.name}: there is no setting "{key}". The nearest is "{_NAMES[nearest]}".')
    if not source.trusted and name in _NOT_FROM_PROJECT:
        raise ConfigurationError(f'{source.name}: "{name}" cannot be set by a project, only by its user.')
    return name


def _checked(name: str, value: Any, source: Source, key: str) -> Any:  # noqa: ANN401 - untyped JSON or TOML
    """The value as the setting's type; complaints name the key as it was written."""
    kind = _TYPES[name]
    converted = _convert(kind, value)
    low, high = _BOUNDS.get(name, (float("-inf"), float("inf")))
    if converted is None:
        raise ConfigurationError(f'{source.name}: "{key}" is {value!r}; it must be {_describe(kind)}.')
    if isinstance(converted, int | float) and not low <= converted <= high:
        raise ConfigurationError(f'{source.name}: "{key}" is {value!r}; it must lie between {low:g} and {high:g}.')
    return converted


def _convert(kind: Any, value: Any) -> Any:  # noqa: ANN401 - see above
    """The value as the setting's type, or None if it is not of that type."""
    if kind in (int, float):
        return _number(kind, value)
    if get_origin(kind) is tuple:
        is_list = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
        return tuple(value) if is_list else None
    if kind in (bool, str):
        return value if isinstance(value, kind) and value != "" else None
    return _choices(kind).get(value) if isinstance(value, str) else None


def _number(kind: type[int | float], value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = kind(value)
    except (OverflowError, ValueError):  # infinity as a whole number, or more digits than a float holds
        return None
    return number if number == value or kind is float else None


def _choices(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type, a Literal or a union of both
    """What may be written for an enumeration, and what it stands for."""
    if isinstance(kind, python_types.UnionType) or (get_origin(kind) is not Literal and get_args(kind)):
        return {text: value for part in get_args(kind) for text, value in _choices(part).items()}
    if get_origin(kind) is Literal:
        return {text: text for text in get_args(kind)}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {member.value: member for member in kind}
    raise TypeError(f"a setting cannot have the type {kind}")


def _describe(kind: Any) -> str:  # noqa: ANN401 - see above
    plain = {bool: "true or false", int: "a whole number", float: "a number", str: "a text that is not empty"}
    if kind in plain:
        return plain[kind]
    if get_origin(kind) is tuple:
        return "a list of texts"
    return "one of " + ", ".join(f'"{text}"' for text in _choices(kind))
