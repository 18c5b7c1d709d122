"""A search with a regular expression takes time in proportion to the text: documents are long, and may be hostile."""

import ast
import importlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SEARCHES = {"findall", "finditer", "search", "split", "sub", "subn"}
LENGTH = 20_000
MAX_S = 0.4
"""Maximum processor time of a search: 20 µs a character. A bounded look-ahead takes less, the square seconds."""
SINGLE = "a1é \t\n([{<\"'`\\-=.,:;$/#@%&|*+_"
REPEATED = (*SINGLE, "\r\n", "a ", "a.", "1.", "a,", "a=", "a:", "a-", " =", "<a ", "</", "{%", "\\n")
"""What a hostile text repeats."""
BOUNDED = {"completion.prompt.healing": "reads the last MAX_RUN_BYTES bytes"}
"""Modules whose texts are short."""


def searching() -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each pattern that its module searches texts with."""
    for package in ("completion", "drafting", "lsp_server"):
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            tree = ast.parse(path.read_text(encoding="utf-8"))
            used = {
                node.value.id
                for node in ast.walk(tree)
                if isinstance(node, ast.Attribute) and node.attr in SEARCHES and isinstance(node.value, ast.Name)
            }
            for node in tree.body:
                if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("re.compile("):
                    name = ast.unparse(node.targets[0])
                    if name in used and module not in BOUNDED:
                        yield module, name


def takes_long(pattern: re.Pattern[str] | re.Pattern[bytes], text: str) -> bool:
    """Return whether a search for all that a pattern finds in a text takes longer than it may."""
    before = time.thread_time()
    for _ in pattern.finditer(text if isinstance(pattern.pattern, str) else text.encode()):
        pass
    return time.thread_time() - before > MAX_S


@pytest.mark.parametrize(("module", "name"), list(searching()))
def test_a_search_takes_time_in_proportion_to_the_text(module, name):
    """A run of word characters, such as a long number in hexadecimal digits, took minutes with its square."""
    pattern = getattr(importlib.import_module(module), name)
    slow = [part for part in REPEATED if takes_long(pattern, (part * LENGTH)[:LENGTH] + "\0")]
    assert not slow


def test_no_repeated_group_is_possessive():
    """Before Python 3.11.5, as on Debian 12, `(?:…)*+` gives up where an alternative has failed; `(?>(?:…)*)` does not.

    There, no string in three quotes had an end (https://github.com/python/cpython/issues/106052).
    """
    possessive = re.compile(r"[^(]\)(?:[*+?]|\{+[^{}]*(?:\{\w+\})?\}+)\+")
    assert possessive.search(r"(?:a|b){{1,{_MOST}}}+c")
    assert possessive.search(r"(?:a|b)*+c")
    files = [path for package in ("completion", "drafting", "lsp_server") for path in (ROOT / package).rglob("*.*")]
    sources = {path: path.read_text(encoding="utf-8") for path in files if path.suffix in {".py", ".toml"}}
    assert [str(path) for path, source in sources.items() if possessive.search(source)] == []
