"""What a name that lost its definition by the edits of one document implies for another one, in several languages."""

import pytest

from completion.edits import LineEdit, NextEditRequest
from completion.next_edit.gate import SHOWN_FROM, Gate
from completion.next_edit.proposals import Proposal, proposals
from completion.syntax.parsing import IN_PROCESS

DEFINED_AND_USED = {
    "python": ("def load_all(path):\n    return path\n", "from store import load_all\n\nprint(load_all('a'))\n"),
    "typescript": (
        "export function loadAll(path: string) {\n  return path;\n}\n",
        'import { loadAll } from "./store";\n\nconsole.log(loadAll("a"));\n',
    ),
    "javascript": (
        "function loadAll(path) {\n  return path;\n}\nmodule.exports = {};\n",
        'const { loadAll } = require("./store");\n\nconsole.log(loadAll("a"));\n',
    ),
    "rust": (
        "pub fn load_all(path: &str) -> &str {\n    path\n}\n",
        'use crate::store::load_all;\n\nfn main() {\n    load_all("a");\n}\n',
    ),
    "go": (
        "package store\n\nfunc LoadAll(path string) string {\n\treturn path\n}\n",
        'package main\n\nimport "shop/store"\n\nfunc main() {\n\tstore.LoadAll("a")\n}\n',
    ),
    "java": (
        "class Store {\n  static String loadAll(String path) {\n    return path;\n  }\n}\n",
        'class Main {\n  String text = Store.loadAll("a");\n}\n',
    ),
    "c": (
        "int load_all(int path) {\n  return path;\n}\n",
        '#include "store.h"\n\nint main(void) {\n  return load_all(1);\n}\n',
    ),
    "cpp": (
        "class LoadAll {\n public:\n  int path;\n};\n",
        '#include "store.h"\n\nint main() {\n  LoadAll all;\n  return all.path;\n}\n',
    ),
}
LANGUAGES = list(DEFINED_AND_USED)


def renamed(text: str, name: str, new: str) -> tuple[list[str], list[LineEdit]]:
    """Return the lines of a document after the rename of the definition of a name, and the edit."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if name in line)
    edit = LineEdit(at, (lines[at],), (lines[at].replace(name, new),))
    lines[at] = edit.new[0]
    return lines, [edit]


def found(language: str, name: str, new: str, defined: str, elsewhere: str) -> list[Proposal]:
    lines, edits = renamed(defined, name, new)
    far = tuple(elsewhere.splitlines())
    return proposals(NextEditRequest(tuple(lines), tuple(edits), language, "shop/store.x", elsewhere=far), IN_PROCESS)


def name_of(language: str) -> tuple[str, str]:
    """Return the name of a sample, and another one."""
    name = next(name for name in ("load_all", "loadAll", "LoadAll") if name in DEFINED_AND_USED[language][0])
    return name, name[:4] + name[4:].replace("ll", "ny")


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_uses_of_a_renamed_definition_are_proposed_in_the_other_document(language: str) -> None:
    (defined, used), (name, new) = DEFINED_AND_USED[language], name_of(language)
    lines = used.splitlines()
    for each in (proposed := found(language, name, new, defined, used)):
        assert Gate.shipped().rules.probability(each.rule_features()) > SHOWN_FROM
        lines[each.candidate.line : each.candidate.end] = each.candidate.new
    assert lines == used.replace(name, new).splitlines()
    assert len(proposed) == sum(name in line for line in used.splitlines())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_name_that_the_other_document_defines_itself_stays(language: str) -> None:
    (defined, used), (name, new) = DEFINED_AND_USED[language], name_of(language)
    own = [line for line in used.splitlines() if not line.startswith(("from", "import", "use", "const"))]
    assert found(language, name, new, defined, "\n".join([*own, defined])) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_name_that_the_edited_document_still_defines_stays(language: str) -> None:
    (defined, used), (name, new) = DEFINED_AND_USED[language], name_of(language)
    assert found(language, name, new, f"{defined}\n{defined}", used) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_renamed_local_name_changes_nothing_elsewhere(language: str) -> None:
    defined, used = DEFINED_AND_USED[language]
    other = used.replace(name_of(language)[0], "path")
    assert found(language, "path", "folder", defined, other) == [] or language == "cpp"  # there it is a field


@pytest.mark.parametrize(
    ("language", "defined", "used", "lines"),
    [
        ("c", "int load_all(int a) {\n  return a;\n}\n", "int load_all(int a);\nint other(void);\n", {0}),
        ("c", "int load_all(int a);\n", "int load_all(int a) {\n  return a;\n}\n", {0}),
        ("cpp", "class P {\n  int load_all();\n};\n", "int P::load_all() {\n  return 1;\n}\n", {0}),
        ("cpp", "int P::load_all() {\n  return 1;\n}\n", "class P {\n  int load_all();\n};\n", {1}),
        ("cpp", "int load_all();\n", '#include "store.h"\nint b = store::load_all();\n', {1}),
    ],
)
def test_a_header_and_its_implementation_define_the_same(
    language: str, defined: str, used: str, lines: set[int]
) -> None:
    assert {each.candidate.line for each in found(language, "load_all", "read_all", defined, used)} == lines


@pytest.mark.parametrize(
    ("language", "defined", "used", "count"),
    [
        ("python", "class Store:\n    def load_all(self): ...\n", "print(cache.load_all())\n", 0),
        ("python", "class Store:\n    def load_all(self): ...\n", "def f(s: Store):\n    s.load_all()\n", 1),
        ("python", "def load_all(): ...\n", "print(cache.load_all())\n", 0),
        ("python", "def load_all(): ...\n", "import store\n\nprint(store.load_all())\n", 1),
        ("typescript", "class Store {\n  loadAll() {}\n}\n", "cache.loadAll();\n", 0),
        ("typescript", "class Store {\n  loadAll() {}\n}\n", "const s = new Store();\ns.loadAll();\n", 1),
        ("java", "class Store {\n  void loadAll() {}\n}\n", "class B {\n  int a = cache.loadAll();\n}\n", 0),
        ("java", "class Store {\n  void loadAll() {}\n}\n", "class B {\n  Store s;\n  int a = s.loadAll();\n}\n", 1),
        ("go", "package a\n\nfunc (s *Store) LoadAll() {}\n", "package b\n\nvar a = cache.LoadAll()\n", 0),
        ("go", "package a\n\nfunc (s *Store) LoadAll() {}\n", "package b\n\nvar s Store\nvar a = s.LoadAll()\n", 1),
        ("rust", "impl Store {\n    fn load_all() {}\n}\n", "fn f() {\n    cache.load_all();\n}\n", 0),
        ("rust", "impl Store {\n    fn load_all() {}\n}\n", "fn f() {\n    Store::load_all();\n}\n", 1),
        ("rust", "enum Kind {\n    LoadAll,\n}\n", "use crate::name::LoadAll;\n\nfn f(a: LoadAll) {}\n", 0),
        ("rust", "enum Kind {\n    LoadAll,\n}\n", "fn f() {\n    Kind::LoadAll\n}\n", 1),
        ("cpp", "class P {\n  int load_all();\n};\n", "int f() {\n  return cache.load_all();\n}\n", 0),
        ("cpp", "class P {\n  int load_all();\n};\n", "int f(P p) {\n  return p.load_all();\n}\n", 1),
    ],
)
def test_a_member_changes_only_where_its_class_or_module_is_named(
    language: str, defined: str, used: str, count: int
) -> None:
    name = next(name for name in ("load_all", "loadAll", "LoadAll") if name in defined)
    assert len(found(language, name, f"{name}Now", defined, used)) == count


def test_a_name_that_nothing_relates_to_the_edited_document_stays() -> None:
    assert found("python", "filter", "choose", "def filter(items): ...\n", "print(filter(None, [1]))\n") == []


@pytest.mark.parametrize(("imported", "count"), [("Any, Optional", 1), ("Any", 0)])
def test_a_form_that_needs_an_import_no_more_changes_where_it_is_imported_as_well(imported: str, count: int) -> None:
    lines = ("from typing import Any", "", "def f(a: str | None) -> Any: ...")
    edits = (
        LineEdit(2, ("def f(a: Optional[str]) -> Any: ...",), (lines[2],)),
        LineEdit(0, ("from typing import Any, Optional",), (lines[0],)),
    )
    other = (f"from typing import {imported}", "", "b: Optional[int] = 1")
    proposed = proposals(NextEditRequest(lines, edits, "python", elsewhere=other), IN_PROCESS)
    assert [each.candidate.new for each in proposed] == [("b: int | None = 1",)] * count
    assert all(Gate.shipped().rules.probability(each.rule_features()) > SHOWN_FROM for each in proposed)


def test_an_import_that_changes_its_form_changes_no_import_elsewhere() -> None:
    lines = ("use crate::Shelf;", "fn f(a: Shelf) {}")
    edits = (LineEdit(0, ("use crate::{Shelf, Fault};",), (lines[0],)),)
    other = ("use crate::{Shelf, Fault};", "fn g(a: Shelf) -> Fault {}")
    assert proposals(NextEditRequest(lines, edits, "rust", elsewhere=other), IN_PROCESS) == []
