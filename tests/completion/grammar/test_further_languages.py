"""Optional grammars: they read the harder parts of their language, notice broken texts, and may be absent."""

import sys
import tomllib
from pathlib import Path

import pytest

from completion.grammar.constraint import GrammarConstraint, OffReason
from completion.request import GrammarMode
from completion.syntax.languages import (
    LANGUAGES,
    grammars_to_install,
    language_address,
    parsed_row,
    tree_sitter_language,
)
from completion.syntax.table import row_of
from completion.syntax.trees import parse
from completion.workspace.code_only import code_by_marks, code_only
from completion.workspace.definitions import definitions
from lsp_server.cli.doctor import _check_grammars
from tests.completion.grammar.acceptors import GRAMMARS, acceptor_of
from tests.completion.grammar.lr.test_acceptor import advance_in_pieces
from tests.completion.grammar.samples import SAMPLES

ROOT = Path(__file__).resolve().parents[3]
FURTHER_SAMPLES = {
    language: (each["text"], each["broken"])
    for language, each in tomllib.loads(
        Path(__file__).with_name("further_samples.toml").read_text(encoding="utf-8")
    ).items()
}
WITH_ACCEPTOR = sorted(language for language in FURTHER_SAMPLES if row_of(language).acceptor)
WITHOUT = sorted(FURTHER_SAMPLES.keys() - set(WITH_ACCEPTOR) - {"markdown"})  # in which no text is wrong


def opened(language, prefix, suffix):
    return GrammarConstraint(GRAMMARS, language, prefix, suffix, GrammarMode.STRICT)


def test_every_language_with_a_grammar_has_a_sample():
    assert set(LANGUAGES) - {"javascriptreact"} == SAMPLES.keys() | FURTHER_SAMPLES.keys()


def test_every_grammar_is_a_dependency_or_an_extra_of_a_pinned_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = {one.partition(">=")[0].replace("-", "_") for one in project["optional-dependencies"]["languages"]}
    always = {one.partition(">=")[0].replace("-", "_") for one in project["dependencies"]}
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").replace("-", "_")
    needed = {row_of(language).package for language in LANGUAGES}
    assert needed - always == extra
    assert all(f"{package}==" in pinned for package in needed)


@pytest.mark.parametrize("language", sorted(FURTHER_SAMPLES))
def test_the_samples_have_no_error_and_broken_ones_have(language):
    text, broken = FURTHER_SAMPLES[language]
    assert not parse(text, language).root_node.has_error
    assert parse(f"{text}{broken}\n", language).root_node.has_error == bool(broken)


@pytest.mark.parametrize("language", WITH_ACCEPTOR)
def test_a_valid_text_is_accepted_in_any_pieces_and_a_broken_one_is_not(language):
    acceptor, (text, broken) = acceptor_of(language), FURTHER_SAMPLES[language]
    snapshot = advance_in_pieces(acceptor, text.encode(), 1)
    assert acceptor.accepts_end(snapshot)
    after = acceptor.advance(snapshot, f"{broken}\n".encode())
    assert after is None or not acceptor.accepts_end(after)


@pytest.mark.parametrize("language", WITHOUT)
def test_without_an_acceptor_every_token_passes_and_a_broken_text_is_cut(language):
    text, broken = FURTHER_SAMPLES[language]
    constraint = opened(language, text, "\n")
    assert (constraint.root, constraint.off_reason) == (None, OffReason.NO_ACCEPTOR)
    assert constraint.longest_passing_cut(broken.encode(), tolerant=True) < len(broken.encode())
    assert constraint.longest_passing_cut(b"\n", tolerant=True) == len(b"\n")


UNUSABLE = {
    "absent": None,
    "damaged": "raise ImportError('libstdc++.so.6: cannot open shared object file')",
    "of another kind": "def language_of_ruby(): return 0",
    "too new": "import ctypes\nlayout = ctypes.create_string_buffer(bytes([99]), 4096)\n"
    "def language(): return ctypes.addressof(layout)",
}


@pytest.fixture(params=UNUSABLE)
def unusable_ruby(request, monkeypatch, tmp_path):
    """Put a package of the Ruby grammar that cannot be used in place of the installed one."""
    known = (parsed_row, language_address, tree_sitter_language)
    for each in known:
        each.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter_ruby", None)
    if UNUSABLE[request.param] is not None:
        (tmp_path / "tree_sitter_ruby.py").write_text(UNUSABLE[request.param])
        monkeypatch.syspath_prepend(tmp_path)
        del sys.modules["tree_sitter_ruby"]
    yield
    for each in known:
        each.cache_clear()


@pytest.mark.usefixtures("unusable_ruby")
def test_a_language_whose_package_cannot_be_used_is_completed_without_its_grammar():
    text, broken = FURTHER_SAMPLES["ruby"]
    constraint = opened("ruby", text, "\n")
    assert constraint.off_reason is OffReason.NO_GRAMMAR
    assert constraint.longest_passing_cut(broken.encode()) == len(broken)
    assert (parse(text, "ruby"), definitions(text, "ruby")) == (None, ())
    assert grammars_to_install() == ["ruby"]
    check = _check_grammars()
    assert (check.state, "draftline[languages]" in check.advice, "ruby" in check.advice) == ("ok", True, True)


OUTLINES = {
    "ruby": [("B", "class B < C\n    attr_reader :x\n    def f(a, b = 1, *c, d:, **e, &g)")],
    "csharp": [("R", "[Serializable]"), ("C", "class C : B\n    public int P")],
    "php": [("G", "#[Attr(1)] final class G extends D\n    use H;\n    public function __construct(")],
    "kotlin": [("D", "@A(1) data class D<T : Any>(val x: Int = 1, var y: T?) : E(), F by g")],
    "swift": [
        ("B", "@available(iOS 13, *) public final class B<T: C>: D where T: E\n    @Published"),
        ("F", "enum F\n"),
    ],
    "scala": [("T", "sealed trait T[+A]\n    def f[B >: A](x: B)"), ("C", "case class C(x: Int")],
    "dart": [("A", "abstract class A<T extends B> extends C with D implements E\n    const A(")],
    "elixir": [("f", "def f(%{a: a} = x, [h | t]) when is_list(t) do")],
    "lua": [("f", "function M:f(a, ...)")],
    "ocaml": [("t", "'a t =\n    x : int"), ("u", "u ="), ("f", "f ?(a = 1) ~b =")],
    "perl": [("f", "sub f")],
    "shellscript": [("f", "f()")],
    "solidity": [("B", "contract B")],
}


@pytest.mark.parametrize("language", sorted(OUTLINES))
def test_the_definitions_of_a_file_are_known_with_their_outlines(language):
    found = definitions(FURTHER_SAMPLES[language][0], language)
    assert [each.name for each in found] == [name for name, _ in OUTLINES[language]]
    for each, (_, start) in zip(found, OUTLINES[language], strict=True):
        assert each.outline.startswith(start)


def test_keywords_in_any_case_begin_in_any_case():
    acceptor = acceptor_of("php")
    for text in ("<?php\nclass A { protected $b; }", "<?php\nCLASS A { Protected $b; }\nIf ($a InstanceOf B) {}"):
        advance_in_pieces(acceptor, text.encode(), 3)


@pytest.mark.parametrize("language", ["markdown", "php", "ruby", "elixir", "yaml", "sql", "html"])
def test_a_grammar_lets_no_prose_into_the_code_of_other_files_that_marks_would_not(language):
    text = FURTHER_SAMPLES[language][0]
    assert code_only(text, language) == code_by_marks(text, language)


def test_a_header_of_objective_c_that_an_editor_takes_for_c_has_its_own_grammar():
    assert opened("c", "#import <Foundation/Foundation.h>\n@interface A : NSObject\n", "@end\n").off_reason is None
