"""What is known of a language stands in its row of `languages.toml`: no other code names one."""

import ast
from pathlib import Path

import pytest

from completion.language_ids import rows

ROOT = Path(__file__).parents[1]
LANGUAGES = frozenset(rows()) - {"patterns", "words", "c", "r"}  # those of one letter are modes of files, too
READERS = frozenset({"completion/language_ids.py", "completion/syntax/table.py"})
EXCEPTIONS = {
    "completion/host/engine_loader.py": "the request that warms the model up is code of some language",
    "completion/host/process/kernel_calls.py": "the request that compiles the kernels is code of some language",
    "lsp_server/cli/checks.py": "it names an editor",
    "lsp_server/engine/auto_model.py": "a value of the setting `on_battery` is the name of a language, too",
    "lsp_server/settings/table.py": "the same value",
    "lsp_server/cli/doctor.py": "the request that tries the engine is code of some language",
}
FILES = sorted(path for package in ("completion", "drafting", "lsp_server") for path in (ROOT / package).rglob("*.py"))


def languages_named(source):
    """Strings of a module that are names of languages, or nothing else than several of them."""
    constants = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    words = (value.split() for value in constants if isinstance(value, str))
    return {name for names in words if LANGUAGES.issuperset(names) for name in names}


def test_no_code_names_a_language():
    naming = {str(path.relative_to(ROOT)): languages_named(path.read_text(encoding="utf-8")) for path in FILES}
    found = {path: names for path, names in naming.items() if names and path not in READERS}
    assert {path: names for path, names in found.items() if path not in EXCEPTIONS} == {}


@pytest.mark.parametrize("source", ['if language == "rust": pass', '_X = {"go": 1}', '_Y = "ruby crystal".split()'])
def test_a_name_in_code_is_found(source):
    assert languages_named(source)


@pytest.mark.parametrize("language", sorted(rows()))
def test_every_key_of_a_row_is_explained_at_the_head_of_the_table(language):
    table = (ROOT / "completion/syntax/languages.toml").read_text(encoding="utf-8")
    head = table[: table.index("\n[")]
    keys = set() if language == "patterns" else {key for key in rows()[language] if key not in head}
    assert keys == set()
