"""What draftline knows a language by, whatever a client calls it."""

import pytest

from completion.edits import NextEditRequest
from completion.language_ids import ending_of, known_language, language_of, rows
from completion.request import CompletionRequest
from completion.syntax.lexicon import lexicon_of


@pytest.mark.parametrize(
    ("name", "path", "language"),
    [
        ("python", "", "python"),
        ("cs", "", "csharp"),
        ("sh", "", "shellscript"),
        ("yaml.ansible", "", "yaml"),
        ("javascript.jsx", "", "javascriptreact"),
        ("go.mod", "go.mod", "gomod"),
        ("go.work", "", "gomod"),
        ("NeogitCommitMessage", "", "git-commit"),
        ("scminput", "", "git-commit"),
        ("plaintext", "src/Main.kt", "kotlin"),
        ("", "deploy/Dockerfile.dev", "dockerfile"),
        ("text", "notes.txt", "plaintext"),
        ("unheard-of", "src/main.py", "unheard-of"),
        ("", "", ""),
    ],
)
def test_a_language_has_one_name(name, path, language):
    assert known_language(name, path) == language
    assert known_language(language, path) == language
    assert CompletionRequest("", language=name, path=path).language == language
    assert NextEditRequest((), (), name, path).language == language


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("CMakeLists.txt", "cmake"),
        ("a/GNUmakefile", "makefile"),
        ("Jenkinsfile", "groovy"),
        ("core/go.mod", "gomod"),
        ("tsconfig.json", "jsonc"),
        ("package.json", "json"),
        (".git/COMMIT_EDITMSG", "git-commit"),
        ("README.md", "markdown"),
        ("lib/Mojo/Date.pm", "perl"),
        ("t/date.t", "perl"),
        ("src/core.cljs", "clojure"),
        ("src/core.cljc", "clojure"),
        ("deps.edn", "clojure"),
        ("src/cow_date.erl", "erlang"),
        ("include/cow.hrl", "erlang"),
        ("flake.nix", "nix"),
        ("LICENSE", ""),
    ],
)
def test_a_files_name_tells_its_language(path, language):
    assert language_of(path) == language


def test_an_unsaved_document_gets_the_ending_of_its_language_by_any_name():
    assert (ending_of("sh"), ending_of("cs"), ending_of("markdown"), ending_of("unheard-of")) == (
        ".sh",
        ".cs",
        ".md",
        "",
    )


@pytest.mark.parametrize("language", sorted(language for language in rows() if lexicon_of(language).is_complete))
def test_a_language_that_has_a_style_is_known_by_the_name_of_the_style(language):
    assert known_language(language) == language
