"""All settings as one typed object, merged from the editor, the project's file and the user's file."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import reprlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin

from platformdirs import PlatformDirs

from completion.errors import ConfigurationError
from lsp_server.settings.table import DEFAULTS, SETTINGS, Scope, Settings, choices
from lsp_server.workspace_reader import read_inside, read_named

PROJECT_FILE = ".draftline.toml"
_FILE_BYTES = 64 * 1024

_NAMES = {name.replace("_", "").lower(): name for name in SETTINGS}
# Bounds of what a hostile repository makes us compare and complain of.
_MOST_KEYS = 100
_LONGEST_KEY = 60


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
        if len(source.values) > _MOST_KEYS:
            complaints.append(
                f"{source.name} has {len(source.values)} keys. All after the first {_MOST_KEYS} are left out."
            )
        for key, value in itertools.islice(source.values.items(), _MOST_KEYS):
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
    except RecursionError:
        return None, [f"{path} cannot be read (values are nested too deeply). Its settings are left out."]
    except (OSError, ValueError) as error:  # not TOML, not UTF-8, or a number of thousands of digits
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
        key, folded = key[:_LONGEST_KEY], folded[:_LONGEST_KEY]
        nearest = difflib.get_close_matches(folded, _NAMES, n=1, cutoff=0.0)[0]
        raise ConfigurationError(f'{source.name}: there is no setting "{key}". The nearest is "{_NAMES[nearest]}".')
    if not source.trusted and SETTINGS[name].scope is not Scope.PROJECT:
        raise ConfigurationError(
            f'{source.name}: a project cannot set "{name}". Set it in your editor or in {user_file()}.'
        )
    return name


def _checked(name: str, value: Any, source: Source, key: str) -> Any:  # noqa: ANN401 - untyped JSON or TOML
    """The value as the setting's type; complaints name the key as it was written."""
    setting = SETTINGS[name]
    converted = _convert(setting.kind, value)
    if converted is None:
        raise ConfigurationError(f'{source.name}: "{key}" is {_shown(value)}; it must be {_describe(setting.kind)}.')
    if isinstance(converted, int | float) and not setting.low <= converted <= setting.high:
        bounds = f"between {setting.low:g} and {setting.high:g}"
        raise ConfigurationError(f'{source.name}: "{key}" is {_shown(value)}; it must lie {bounds}.')
    return converted


def _shown(value: object) -> str:
    """A wrong value as a complaint names it: shortened where it is long, for the client may send anything."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python prints no number of more than 4,300 digits
        return "a number of thousands of digits"


def _convert(kind: Any, value: Any) -> Any:  # noqa: ANN401 - see above
    """The value as the setting's type, or None if it is not of that type."""
    if kind in (int, float):
        return _number(kind, value)
    if get_origin(kind) is tuple:
        is_list = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
        return tuple(value) if is_list else None
    if kind in (bool, str):
        return value if isinstance(value, kind) and value != "" else None
    return choices(kind).get(value) if isinstance(value, str) else None


def _number(kind: type[int | float], value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = kind(value)
    except (OverflowError, ValueError):  # infinity as a whole number, or more digits than a float holds
        return None
    return number if number == value or kind is float else None


def _describe(kind: Any) -> str:  # noqa: ANN401 - see above
    plain = {bool: "true or false", int: "a whole number", float: "a number", str: "a text that is not empty"}
    if kind in plain:
        return plain[kind]
    if get_origin(kind) is tuple:
        return "a list of texts"
    return "one of " + ", ".join(f'"{text}"' for text in choices(kind))
