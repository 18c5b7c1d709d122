"""Merges the settings of the user's file, the projects' files and the editor into one typed object."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import re
import reprlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin

from completion.errors import ConfigurationError
from completion.paths import config_dir
from completion.remote.address import RemoteAddress
from lsp_server.settings.rows import Scope, choices
from lsp_server.settings.table import DEFAULTS, SETTINGS, Settings
from lsp_server.workspace_reader import read_inside, read_named

PROJECT_FILE = ".draftline.toml"
_MAX_FILE_BYTES = 64 * 1024
_DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\w-]+)[ \t]*\.[ \t]*){16}""")
"""A key of more parts than any setting has: the time that tomllib takes for one grows with their square."""

_NAMES = {name.replace("_", "").lower(): name for name in SETTINGS}
_MAX_KEYS = 100
"""Maximum number of keys that are read from one source, which bounds the work that a hostile repository can cause."""
_MAX_KEY_CHARACTERS = 60
"""Maximum length of an unknown key that is compared with the known keys and quoted in an error message."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source of settings.

    Attributes:
        name: Name of the source in error messages, for example "initializationOptions" or a file's path.
        values: Values by key, as the source spells it.
        trusted: Whether the source may set every setting; a project's file may not.
    """

    name: str
    values: Mapping[str, Any]
    trusted: bool = True


def merge(sources: Sequence[Source]) -> tuple[Settings, list[str]]:
    """Merge sources. A later source overrides an earlier one; invalid values are ignored.

    Returns:
        The settings, and an error message for each ignored value.
    """
    chosen: dict[str, Any] = {}
    problems: list[str] = []
    for source in sources:
        if len(source.values) > _MAX_KEYS:
            problems.append(
                f"{source.name} has {len(source.values)} keys. Those after the first {_MAX_KEYS} are ignored."
            )
        for key, value in itertools.islice(_flat(source.values), _MAX_KEYS):
            try:
                name = _known_name(key, source)
                chosen[name] = _checked(name, value, source, key)
            except ConfigurationError as error:
                problems.append(str(error))
    return dataclasses.replace(DEFAULTS, **chosen), problems


def read_file(path: Path, project: Path | None) -> tuple[Source | None, list[str]]:
    """Read a TOML file of settings, the user's own one if it is of no `project`, whose folder that is.

    Returns:
        The source, None if the file does not exist or is invalid, and an error message if it is invalid.
    """
    try:
        content = read_inside(project, path, _MAX_FILE_BYTES) if project else read_named(path, _MAX_FILE_BYTES)
        text = content.decode("utf-8-sig")
        if _DEEP_KEY.search(text):
            return None, [f"{path} cannot be read (a key has more than 16 parts). Its settings are ignored."]
        return Source(str(path), tomllib.loads(text), trusted=project is None), []
    except FileNotFoundError:
        return None, []
    except RecursionError:
        return None, [f"{path} cannot be read (values are nested too deeply). Its settings are ignored."]
    except OSError as error:
        return None, [f"{path} cannot be read ({error.strerror}). Its settings are ignored."]
    except ValueError as error:  # invalid TOML or UTF-8, or a number of thousands of digits
        return None, [f"{path} cannot be read ({error}). Its settings are ignored."]


def user_file() -> Path:
    """Return the path of the user's own settings file."""
    return config_dir() / "config.toml"


def load(user: Path, folder: Path | None, editor: Sequence[Source]) -> tuple[Settings, list[str]]:
    """Merge the user's file, a folder's project file and the editor's settings, in this order.

    Returns:
        The settings, and an error message for each ignored file or value.
    """
    sources: list[Source] = []
    problems: list[str] = []
    for path, project in [(user, None), *([(folder / PROJECT_FILE, folder)] if folder else ())]:
        source, found = read_file(path, project)
        problems += found
        if source:
            sources.append(source)
    settings, found = merge([*sources, *editor])
    return settings, problems + found


def remote_address(settings: Settings) -> RemoteAddress:
    """Return the address of the engine or model server elsewhere; its `url` is "" if all runs on this computer."""
    names = [one.name for one in dataclasses.fields(RemoteAddress)]
    return RemoteAddress(**{name: getattr(settings, f"engine_{name}") for name in names})


def users_settings() -> Settings:
    """Return the settings of the user's own file, for commands in a terminal."""
    return load(user_file(), None, [])[0]


def users_problems() -> list[str]:
    """Return an error message for each ignored value of the user's own file, for commands in a terminal."""
    return load(user_file(), None, [])[1]


def with_option(settings: Settings, name: str, value: object) -> Settings:
    """Return the settings with the value of the command line's option of the same name.

    Raises:
        ConfigurationError: The value is invalid for this setting.
    """
    checked = _checked(name, value, Source("command line", {}), f"--{name.replace('_', '-')}")
    return dataclasses.replace(settings, **{name: checked})


def with_text(settings: Settings, name: str, text: str) -> Settings:
    """Return the settings with one value replaced, given as text: `line`, `60`, `false`.

    Raises:
        ConfigurationError: The value is invalid for this setting.
    """
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:  # a bare word
        value = text
    return dataclasses.replace(settings, **{name: _checked(name, value, Source(f"{name}={text}", {}), name)})


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield keys and values; those of a table `[engine]` as `engine_url` and so on."""
    for key, value in values.items():
        if key == "engine" and isinstance(value, Mapping):
            yield from ((f"engine_{inner}", each) for inner, each in value.items())
        else:
            yield key, value


def _known_name(key: str, source: Source) -> str:
    folded = key.replace("_", "").replace("-", "").lower()
    name = _NAMES.get(folded)
    if name is None:
        key, folded = key[:_MAX_KEY_CHARACTERS], folded[:_MAX_KEY_CHARACTERS]
        nearest = difflib.get_close_matches(folded, _NAMES, n=1, cutoff=0.0)[0]
        raise ConfigurationError(f'{source.name}: there is no setting "{key}". The nearest is "{_NAMES[nearest]}".')
    if not source.trusted and SETTINGS[name].scope is not Scope.PROJECT:
        raise ConfigurationError(
            f'{source.name}: a project cannot set "{name}". Set it in your editor or in {user_file()}.'
        )
    return name


def _checked(name: str, value: Any, source: Source, key: str) -> Any:  # noqa: ANN401 - untyped JSON or TOML
    """Return the value as the setting's type. Error messages spell the key as its source does."""
    setting = SETTINGS[name]
    if value == setting.default == "":  # VS Code writes out defaults
        return value
    converted = _convert(setting.kind, value)
    if converted is None:
        raise ConfigurationError(f'{source.name}: "{key}" is {_shown(value)}; it must be {_describe(setting.kind)}.')
    if isinstance(converted, int | float) and not setting.low <= converted <= setting.high:
        bounds = f"between {setting.low:g} and {setting.high:g}"
        raise ConfigurationError(f'{source.name}: "{key}" is {_shown(value)}; it must be {bounds}.')
    if setting.folders and (wrong := [rule for rule in converted if not _names_folder(rule)]):
        raise ConfigurationError(
            f'{source.name}: "{key}" has {_shown(wrong[0])}; each folder must be a whole path, or "*".'
        )
    return converted


def _names_folder(rule: str) -> bool:
    """Return whether a rule means the same folder wherever draftline starts."""
    name = rule.removeprefix("!")
    return name == "*" or name.startswith("~") or Path(name).is_absolute()


class _Shown(reprlib.Repr):
    """A value as an error message quotes it, shortened if it is long."""

    def repr_int(self, x: int, level: int) -> str:  # the parameters' names are the library's
        """Return a number; Python prints none of more than 4,300 digits, and its versions differ in what they say."""
        return "a number of thousands of digits" if x.bit_length() > 1 << 12 else super().repr_int(x, level)


_shown = _Shown().repr


def _convert(kind: Any, value: Any) -> Any:  # noqa: ANN401 - see above
    """Return the value as the setting's type, None if it is not of that type."""
    if kind in (int, float):
        return _number(kind, value)
    if get_origin(kind) is tuple:
        is_list = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
        return tuple(value) if is_list else None
    if kind in (bool, str):
        return value if isinstance(value, kind) and value != "" else None
    return choices(kind).get(str(value)) if isinstance(value, str | float) else None


def _number(kind: type[int | float], value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = kind(value)
    except (OverflowError, ValueError):  # an infinity for a whole number, or an integer too large for a float
        return None
    return number if number == value or kind is float else None


def _describe(kind: Any) -> str:  # noqa: ANN401 - see above
    plain = {bool: "true or false", int: "a whole number", float: "a number", str: "a non-empty string"}
    if kind in plain:
        return plain[kind]
    if get_origin(kind) is tuple:
        return "a list of strings"
    return "one of " + ", ".join(f'"{text}"' for text in choices(kind))
