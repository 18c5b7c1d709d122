"""Write the files that depend on the table of settings, lsp_server/settings/table.py. `FILES` lists them.

`python scripts/write_settings.py` rewrites stale files. With `--check` it names them and fails.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_origin

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))  # a checkout needs no installation

from lsp_server.settings.rows import Scope, Setting, choices  # noqa: E402
from lsp_server.settings.table import SETTINGS  # noqa: E402

TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
PROJECT, USER = "project's settings", "user's settings"


def plain(value: object) -> Any:  # noqa: ANN401 - as JSON has it
    """Return a default as JSON and TOML write it: 10 for 10.0."""
    if isinstance(value, tuple):
        return list(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def camel_case(name: str) -> str:
    """Return a setting's name as VS Code writes it."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def linked(description: str) -> str:
    """Return a description in which VS Code links to the settings that it names."""
    names = "|".join(SETTINGS)
    return re.sub(f"`({names})`", lambda found: f"`#draftline.{camel_case(found[1])}#`", description)


def schema(setting: Setting, order: int) -> dict[str, Any]:
    """Return a setting as VS Code declares it."""
    declared: dict[str, Any] = {"type": TYPES.get(setting.kind, "string"), "default": plain(setting.default)}
    if get_origin(setting.kind) is tuple:
        declared |= {"type": "array", "items": {"type": "string"}}
    elif choices(setting.kind):
        declared["enum"] = list(choices(setting.kind))
    elif setting.kind in (int, float):
        declared |= {"minimum": plain(setting.low), "maximum": plain(setting.high)}
    return {**declared, "order": order, "scope": str(setting.scope), "markdownDescription": linked(setting.description)}


def package_json(text: str) -> str:
    """Write the server's section of the extension's settings, and name those that a workspace must not choose."""
    manifest = json.loads(text)
    sections = manifest["contributes"]["configuration"]
    shown = [setting for setting in SETTINGS.values() if setting.scope is not Scope.CLIENT]
    server = next(section for section in sections if section["title"] == "Server")
    server["properties"] = {f"draftline.{camel_case(one.name)}": schema(one, order) for order, one in enumerate(shown)}
    declared = {name: value for section in sections for name, value in section["properties"].items()}
    restricted = [name for name, value in declared.items() if value["scope"] != Scope.PROJECT]
    manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = restricted
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def lua_names(_text: str) -> str:
    """Write the names that the Neovim plugin knows."""
    names = "".join(f'  "{name}",\n' for name in SETTINGS)
    head = "-- Names of the server's settings, for the check at `setup()`. Written by scripts/write_settings.py.\n"
    return f"{head}\nreturn {{\n{names}}}\n"


def values(setting: Setting) -> str:
    """Return the valid values of a setting, for a table cell."""
    if get_origin(setting.kind) is tuple:
        return "list of strings"
    if choices(setting.kind):
        return ", ".join(f"`{choice}`" for choice in choices(setting.kind))
    if setting.kind in (int, float):
        return f"{plain(setting.low)} to {plain(setting.high)}"
    return {bool: "`true`, `false`", str: "string"}[setting.kind]


def table(settings: Iterable[Setting]) -> str:
    """Return a Markdown table."""
    rows = "".join(
        f"| `{one.name}` | `{json.dumps(plain(one.default))}` | {values(one)} | {one.description} |\n"
        for one in settings
    )
    return f"| setting | default | values | meaning |\n|---|---|---|---|\n{rows}"


def page(text: str) -> str:
    """Write the tables of the page, each between its two markers."""
    for name, is_project in ((PROJECT, True), (USER, False)):
        rows = table(one for one in SETTINGS.values() if (one.scope is Scope.PROJECT) is is_project)
        begin, end = f"<!-- {name} -->\n", f"<!-- end of the {name} -->"
        head, _, rest = text.partition(begin)
        text = head + begin + rows + end + rest.partition(end)[2]
    return text


FILES: dict[str, Callable[[str], str]] = {
    "docs/settings.md": page,
    "ide_clients/vscode/package.json": package_json,
    "ide_clients/neovim/lua/draftline/server_settings.lua": lua_names,
}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Write the files that depend on the table of settings.")
    parser.add_argument("--check", action="store_true", help="write no file; name the stale files and return 1")
    is_check = parser.parse_args().check
    stale = []
    for name, write in FILES.items():
        path = REPOSITORY / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = write(before)
        if after != before:
            stale.append(name)
            if not is_check:
                path.write_text(after, encoding="utf-8")
    for name in stale:
        print(f"{name} is stale; run: python scripts/write_settings.py" if is_check else f"wrote {name}")
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
