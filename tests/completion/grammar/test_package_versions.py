"""The grammar packages in their lowest supported versions (the newest are installed)."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOWEST = {
    "tree-sitter-python==0.25.0": ["python"],
    "tree-sitter-javascript==0.25.0": ["javascript"],
    "tree-sitter-typescript==0.23.0": ["typescript", "typescriptreact"],
    "tree-sitter-go==0.25.0": ["go"],
    "tree-sitter-rust==0.24.0": ["rust"],
    "tree-sitter-java==0.23.0": ["java"],
    "tree-sitter-c==0.24.0": ["c"],
    "tree-sitter-cpp==0.23.0": ["cpp"],
    "tree-sitter-json==0.24.0": ["json"],
    # below the range: the oldest supported layouts of the language structure
    "tree-sitter-python==0.23.0": ["python"],
    "tree-sitter-java==0.21.0": ["java"],
}
PROGRAM = """
import sys, importlib
from completion.grammar.parsed_documents import load_documents
from completion.grammar.grammar import Grammars
from completion.syntax.table import row_of
from tests.completion.grammar.samples import SAMPLES
for language in sys.argv[1:]:
    grammar = Grammars().load(language)
    module = sys.modules[row_of(language).package]
    text = SAMPLES[language].encode()
    assert not load_documents(language).document(text).tree.root_node.has_error, "the sample is newer than the grammar"
    snapshot = grammar.acceptor.start()
    for i in range(0, len(text), 5):
        snapshot = grammar.acceptor.advance(snapshot, text[i : i + 5])
        assert snapshot is not None, text[:i][-60:]
    assert grammar.acceptor.accepts_end(snapshot)
    assert grammar.acceptor.advance(snapshot, b" ) ] ) ") is None
    print(module.__file__, grammar.tables.abi_version)
"""


def test_every_grammar_package_that_is_always_installed_is_tested_at_the_lower_end_of_its_range():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    grammars = [one for one in project["dependencies"] if one.startswith("tree-sitter-")]
    assert {f"{one.replace('>=', '==')}.0" for one in grammars} <= LOWEST.keys()


@pytest.mark.slow
@pytest.mark.parametrize("requirement", sorted(LOWEST))
def test_the_lowest_version_works_like_the_newest(requirement, tmp_path):
    fetched = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path, requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    if fetched.returncode:
        pytest.skip(f"{requirement} cannot be fetched here: {fetched.stderr[-200:]}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *LOWEST[requirement]],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) in done.stdout
