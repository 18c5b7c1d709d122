"""The snippets of other files for a request: definitions of imports, similar code and edits; never secrets."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.request import CompletionRequest, WorkspaceFile, WorkspaceUpdate
from completion.workspace import context as workspace_context
from completion.workspace.context import WorkspaceContext, edited_region
from completion.workspace.definitions import definitions, imports
from completion.workspace.document_words import DocumentWords
from completion.workspace.secret_files import is_secret
from completion.workspace.workspaces import Workspaces


def workspace(**texts):
    files = WorkspaceContext()
    files.update(WorkspaceUpdate("w", tuple(WorkspaceFile(path, text) for path, text in texts.items())))
    return files


DEFINITIONS = [
    ("python", "class A(B):\n    def f(self, x: int) -> str:\n        return x\n", "A", "def f(self, x: int) -> str"),
    ("python", "LIMIT = 3\n", "LIMIT", "LIMIT = 3"),
    ("typescript", "export interface A {\n  b: string;\n}\n", "A", "b: string"),
    ("typescript", "export const f = (a: number) => a + 1;\n", "f", "(a: number)"),
    ("javascript", "class A {\n  f(x) { return x; }\n}\n", "A", "f(x)"),
    (
        "rust",
        "pub struct A { pub b: u8 }\nimpl A {\n    pub fn new(b: u8) -> Self { A { b } }\n}\n",
        "A",
        "fn new(b: u8)",
    ),
    ("go", "func Add(a int, b int) int {\n\treturn a + b\n}\n", "Add", "func Add(a int, b int) int"),
    ("go", "type A struct {\n\tB int\n}\n", "A", "B int"),
    ("java", "class A {\r\n    int f(int x) {\r\n        return x;\r\n    }\r\n}\r\n", "A", "int f(int x)"),
    ("c", "#define LIMIT 3\nint add(int a, int b) { return a + b; }\n", "add", "int add(int a, int b)"),
    ("cpp", "namespace n {\nclass A {\n  int f(int x);\n};\n}\n", "A", "int f(int x)"),
]


@pytest.mark.parametrize(("language", "text", "name", "part"), DEFINITIONS)
def test_an_outline_has_the_signature_and_the_members(language, text, name, part):
    found = {definition.name: definition.outline for definition in definitions(text, language)}
    assert part in found[name]
    assert "return" not in found[name]


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("python", "from .a import (\n    b as c,\n)\n", "b"),
        ("javascript", "const { b } = require('./a');\n", "b"),
        ("typescript", "import type { b } from './a';\n", "b"),
        ("rust", "use crate::a::{b, c};\n", "b"),
        ("go", 'import (\n\tb "x/a"\n)\n', "b"),
        ("java", "import x.b;\n", "b"),
        ("c", '#include "b.h"\n', "b"),
    ],
)
def test_imported_names(language, text, name):
    assert name in imports(text, language).names


def test_the_definition_of_an_imported_name_comes_last_within_the_budget():
    files = workspace(
        **{
            "p/a.py": "def wanted(x):\n    return x\n\n\ndef other():\n    pass\n",
            "p/b.py": "def unrelated():\n    pass\n",
        }
    )
    request = CompletionRequest("from p.a import wanted\n\nx = ", language="python", path="p/c.py")
    (piece,) = files.choose(request, 100)
    assert (piece.path, piece.text) == (
        "p/a.py",
        "def wanted(x):\ndef other():",
    )  # only the head of the other
    assert files.choose(request, 2) == ()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("FIRST, SECOND = 1, 2\n", "FIRST, SECOND = 1, 2"),
        ("FIRST, SECOND = (\n  1, 2)\n", "FIRST, SECOND = (\n  1, 2)"),
    ],
)
def test_a_definition_of_two_names_is_shown_once(text, shown):
    request = CompletionRequest("from p.a import FIRST\n\nx = FIRST, SECOND", language="python", path="p/c.py")
    assert [piece.text for piece in workspace(**{"p/a.py": text}).choose(request, 100)] == [shown]


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ('import { wanted } from "./a";', "function wanted(x)"),
        ('import * as a from "./a";', "function wanted(x)\nfunction other()"),
        ('const a = require("./a");', "function wanted(x)\nfunction other()"),
    ],
)
def test_a_script_file_shows_the_imported_definitions(statement, shown):
    files = workspace(**{"p/a.ts": "export function wanted(x) { return x; }\nexport function other() {}\n"})
    request = CompletionRequest(f"{statement}\n\nconst x = wanted(", language="typescript", path="p/c.ts")
    assert [piece.text for piece in files.choose(request, 100)] == [shown]


TEXTS = {
    "python": ("def open_db(path):\n    return path\n", "def open_db(path):"),
    "typescript": ("export function openDb(path) { return path; }\n", "function openDb(path)"),
    "rust": ("pub fn open_db(path: &str) {}\n", "pub fn open_db(path: &str)"),
    "go": ("package store\n\nfunc OpenDB(path string) {\n}\n", "func OpenDB(path string)"),
    "c": ("int open_db(const char *path);\n", "int open_db(const char *path);"),
}
WHOLE_MODULES = [
    ("typescript", 'import * as api from "../user-api";', "lib/user-api.ts"),
    ("typescript", 'import api from "../lib/user.api.js";', "lib/user.api.ts"),
    ("typescript", 'import * as api from "../api/";', "api/index.ts"),
    ("typescript", 'import * as api from "../api";', "api/index.d.ts"),
    ("python", "from app import store", "app/store/__init__.py"),
    ("python", "import app.store", "app/store/__init__.py"),
    ("rust", "use crate::store;", "src/store/mod.rs"),
    ("go", 'package main\n\nimport (\n\t"fmt"\n\n\t"a.com/app/store"\n)', "store/db.go"),
    ("go", 'package main\n\nimport "a.com/store"', "store.go"),
    ("c", '#include "my-store.h"', "include/my-store.h"),
    ("c", "#include <lib/my-store.h>", "include/my-store.h"),
]


@pytest.mark.parametrize(("language", "statement", "path"), WHOLE_MODULES, ids=[row[2] for row in WHOLE_MODULES])
def test_a_file_is_imported_by_any_name_that_its_language_has_for_it(language, statement, path):
    text, outline = TEXTS[language]
    request = CompletionRequest(f"{statement}\n\nvalue = ", language=language, path="cmd/main")
    assert [(piece.path, piece.text) for piece in workspace(**{path: text}).choose(request, 200)] == [(path, outline)]


@pytest.mark.parametrize(
    ("language", "statement", "path"),
    [
        ("typescript", 'import * as users from "../api/users";', "api/index.ts"),
        ("typescript", 'import * as api from "../user.service";', "lib/service.ts"),
        ("python", "from app.store import connect", "app/__init__.py"),
        ("go", 'package main\n\nimport "a.com/app/store/sqlite"', "store/db.go"),
        ("go", 'package main\n\nimport "a.com/app/store"', "store/db_test.go"),
        ("go", 'package main\n\nimport "errors"', "net/errors.go"),
    ],
)
def test_only_the_last_part_of_a_path_names_a_file(language, statement, path):
    document = DocumentWords("cmd/main", imports(statement, language), f"{statement}\n\n", "", 200)
    assert not document.imports_file(path)


def test_the_choice_stays_the_same_while_a_line_is_typed():
    texts = {f"p/{name}.py": f"def {name}():\n    pass\n" for name in ("alpha", "beta", "gamma")}
    files = workspace(**texts)
    head = "from p.alpha import alpha\nfrom p.beta import beta\n" + "x = 1\n" * 40
    typed = "y = alpha() + gamma"
    choices = {
        files.choose(CompletionRequest(head + typed[:n], language="python", path="p/c.py"), 200)
        for n in range(len(typed) + 1)
    }
    assert len(choices) == 1


def through_workspaces():
    workspaces = Workspaces(None, None)
    return lambda update: [*workspaces.update(update)], workspaces.snippets


def directly():
    files = WorkspaceContext()
    return files.update, files.choose


@pytest.mark.parametrize("way", [directly, through_workspaces])
def test_files_are_searched_once_per_line_not_per_keystroke(monkeypatch, way):
    update, choose = way()
    for path, text in (("shapes.py", "def area(width, height):\n    return width * height\n"), ("a.py", "x = 1\n")):
        update(WorkspaceUpdate("w", (WorkspaceFile(path, text),)))
    searches = []
    similar = workspace_context.most_similar
    monkeypatch.setattr(workspace_context, "most_similar", lambda *given: searches.append(1) or similar(*given))
    above = "from shapes import area\n"
    for typed in ("a", "ar", "are"):
        choose(CompletionRequest(above + typed, "\n", "python", path="a.py", workspace="w"), 512)
        update(WorkspaceUpdate("w", (WorkspaceFile("a.py", above + typed),)))  # the editor sends its own file too
    assert len(searches) == 1
    choose(CompletionRequest(above + "area\n", "\n", "python", path="a.py", workspace="w"), 512)
    assert len(searches) == 2


PIECES = ("x", "\n", "def area_of(width):\n    return width\n", "from a import area_of\n", "total = area_of(width)\n")


def test_a_cached_choice_equals_a_fresh_one():
    rng, names = random.Random(3), [f"{name}.py" for name in "abcdefgh"]
    files, texts = WorkspaceContext(), dict.fromkeys(names, "")
    for _ in range(200):
        path = names[0] if rng.random() < 0.5 else rng.choice(names)
        texts[path] += rng.choice(PIECES)
        removed = (rng.choice(names),) if rng.random() < 0.1 else ()
        files.update(WorkspaceUpdate("w", (WorkspaceFile(path, texts[path]),), removed))
        request = CompletionRequest(texts[names[0]], "\nend()\n", "python", path=names[0])
        assert files.choose(request, 128) == replace(files, _last=None).choose(request, 128)


def test_a_choice_is_renewed_when_the_documents_own_update_removes_a_file(monkeypatch):
    monkeypatch.setattr(workspace_context, "MAX_FILES", 1)
    files = workspace(**{"b.py": "def area_of(width):\n    return width\n"})
    request = CompletionRequest("from b import area_of\n", "\n", "python", path="a.py")
    assert [piece.path for piece in files.choose(request, 128)] == ["b.py"]
    files.update(WorkspaceUpdate("w", (WorkspaceFile("a.py", request.prefix),)))
    assert files.choose(request, 128) == ()


def test_a_choice_is_renewed_when_the_documents_own_edit_removes_an_edit(monkeypatch):
    monkeypatch.setattr(workspace_context, "_MAX_EDITS", 1)
    files = workspace(**{"a.py": "x = 1\n", "b.py": "one = 1\n"})
    files.update(WorkspaceUpdate("w", (WorkspaceFile("b.py", "one = 2\n"),)))
    request = CompletionRequest("x = 1\n", "\n", "python", path="a.py")
    assert [piece.path for piece in files.choose(request, 128)] == ["b.py"]
    files.update(WorkspaceUpdate("w", (WorkspaceFile("a.py", "x = 2\n"),)))
    assert files.choose(request, 128) == ()


def test_similar_code_and_recent_edits_come_before_definitions():
    similar = "def g():\n" + "\n".join(f"    result = parse_header(stream, offset_{i}, strict_mode)" for i in range(12))
    files = workspace(**{"p/a.py": "def wanted(x):\n    return x\n", "p/s.py": similar, "p/e.py": "one = 1\ntwo = 2\n"})
    files.update(WorkspaceUpdate("w", (WorkspaceFile("p/e.py", "one = 1\nbetter = 2\n"),)))
    near = "def f(stream, strict_mode):\n    result = parse_header(stream, offset_1, strict_mode)\n"
    request = CompletionRequest(f"from p.a import wanted\n{near}    ", language="python", path="p/c.py")
    assert [piece.path for piece in files.choose(request, 900)] == ["p/e.py", "p/s.py", "p/a.py"]


def test_of_a_long_file_only_similar_lines_are_shown():
    lines = [f"unrelated_{number}()" for number in range(48)]
    lines[24:40] = similar = ["parse_header(stream, offset, strict_mode)"] * 16
    files = workspace(**{"p/s.py": "\n".join(lines)})
    request = CompletionRequest(f"{similar[0]}\n", language="python", path="p/c.py")
    assert [(piece.path, piece.text) for piece in files.choose(request, 900)] == [("p/s.py", "\n".join(similar))]


@pytest.mark.parametrize("later", ["without it", "too large", "evicted"])
def test_an_edit_is_forgotten_once_the_file_does_not_have_it(monkeypatch, later):
    before = "".join(f"def f{number}(a):\n    return a + {number}\n\n" for number in range(6))
    indexed = workspace(**{"m.py": before})
    indexed.update(WorkspaceUpdate("w", (WorkspaceFile("m.py", before + "def added(value):\n    return value\n"),)))
    assert "added" in indexed.edits["m.py"].text
    monkeypatch.setattr(workspace_context, "MAX_FILES", 1)
    path, text = {
        "without it": ("m.py", before),
        "too large": ("m.py", "x" * 300_000),
        "evicted": ("other.py", "x = 1\n"),
    }[later]
    indexed.update(WorkspaceUpdate("w", (WorkspaceFile(path, text),)))
    assert "m.py" not in indexed.edits


def test_edited_region_is_what_changed_with_a_margin():
    before = "\n".join("abcdefgh")
    assert edited_region(before, before.replace("d", "D")) == "b\nc\nD\ne\nf"
    assert edited_region(before, before) == ""


@given(
    st.lists(
        st.sampled_from(
            [".env", ".env.local", "id_rsa", "server.pem", "key.p12", ".ssh/config", ".aws/credentials", "secrets.json",
             "terraform.tfvars", ".npmrc", "src/a.py", "src/b.py", "lib/environment.py"]
        ),
        unique=True,
    ),
    st.integers(0, 2000),
)  # fmt: skip
@settings(max_examples=100)
def test_no_secret_file_ever_reaches_a_request(paths, budget):
    canary = "canary_value = do_not_show(stream, header, offset)"
    ordinary = "value = show(stream, header, offset)"
    files = workspace(**{f"p/{path}": canary if is_secret(path) else ordinary for path in paths})
    files.update(
        WorkspaceUpdate(
            "w", tuple(WorkspaceFile(f"p/{path}", canary + "\nmore = 1") for path in paths if is_secret(path))
        )
    )
    request = CompletionRequest(
        "from p.b import canary_value\nvalue = show(stream, header, offset)\ncanary_value = do_not_show(stream)\n",
        language="python",
        path="p/c.py",
    )
    assert all("canary" not in piece.text and not is_secret(piece.path) for piece in files.choose(request, budget))


@pytest.mark.parametrize("path", ["src/main.py", "environment.ts", "keyboard.c", "secretary.rs", "a/env/b.go"])
def test_ordinary_files_are_not_secret(path):
    assert not is_secret(path)
