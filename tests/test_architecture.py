"""Every file and function that docs/architecture.md names exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:lsp_server|completion|drafting|tests)/[\w/]+\.py)(?:: ([\w.]+))?`", PAGE)))
FOLDERS = set(re.findall(r"`((?:lsp_server|completion|drafting|tests|benchmarks|ide_clients)(?:/\w+)*/)`", PAGE))


def defined_names(path):
    """Qualified names of the functions and classes of a module, without those inside functions."""
    names, waiting = set(), [("", ast.parse(path.read_text(encoding="utf-8")))]
    while waiting:
        prefix, node = waiting.pop()
        for child in node.body:
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(prefix + child.name)
            if isinstance(child, ast.ClassDef):
                waiting.append((f"{prefix}{child.name}.", child))
    return names


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_the_page_names_what_exists(file, name):
    assert (ROOT / file).is_file()
    assert not name or name in defined_names(ROOT / file)


def test_the_page_names_every_folder_of_the_packages():
    packages = [ROOT / "lsp_server", ROOT / "completion"]
    existing = {f"{path.parent.relative_to(ROOT)}/" for top in packages for path in top.glob("*/__init__.py")}
    assert existing <= FOLDERS
    assert all((ROOT / folder).is_dir() for folder in FOLDERS)
    assert len(NAMED) > 30
