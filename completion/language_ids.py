"""The names of languages: LSP identifiers, other names that clients send for them, and the names of files.

This module imports the standard library only, because the types of requests use it.
"""

from __future__ import annotations

from pathlib import PurePath

_LANGUAGE_OF_ENDING = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".jsx": "javascriptreact", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript",
    ".tsx": "typescriptreact", ".go": "go", ".rs": "rust", ".java": "java", ".c": "c", ".cpp": "cpp", ".cc": "cpp",
    ".cxx": "cpp", ".h": "cpp", ".hpp": "cpp", ".hh": "cpp", ".json": "json",
    ".rb": "ruby", ".rake": "ruby", ".gemspec": "ruby", ".sh": "shellscript", ".bash": "shellscript",
    ".zsh": "shellscript", ".fish": "fish", ".pl": "perl", ".pm": "perl", ".t": "perl",
    ".r": "r", ".jl": "julia",
    ".kt": "kotlin", ".kts": "kotlin", ".swift": "swift", ".scala": "scala", ".dart": "dart", ".php": "php",
    ".groovy": "groovy", ".gradle": "groovy", ".cs": "csharp", ".m": "objective-c", ".mm": "objective-cpp",
    ".cu": "cuda-cpp", ".vue": "vue", ".svelte": "svelte", ".toml": "toml", ".yaml": "yaml",
    ".yml": "yaml", ".jsonc": "jsonc", ".json5": "jsonc", ".code-workspace": "jsonc",
    ".css": "css", ".scss": "scss", ".less": "less", ".sql": "sql", ".ex": "elixir", ".exs": "elixir",
    ".clj": "clojure", ".cljs": "clojure", ".cljc": "clojure", ".edn": "clojure", ".erl": "erlang", ".hrl": "erlang",
    ".nix": "nix", ".proto": "proto3", ".zig": "zig", ".tf": "terraform", ".tfvars": "terraform",
    ".hcl": "terraform", ".graphql": "graphql", ".gql": "graphql", ".mk": "makefile", ".cmake": "cmake",
    ".dockerfile": "dockerfile", ".html": "html", ".htm": "html", ".xml": "xml", ".lua": "lua", ".hs": "haskell",
    ".ml": "ocaml", ".mli": "ocaml", ".fs": "fsharp", ".fsi": "fsharp", ".fsx": "fsharp",
    ".ps1": "powershell", ".psm1": "powershell", ".md": "markdown", ".markdown": "markdown", ".mdx": "markdown",
    ".rst": "restructuredtext", ".adoc": "asciidoc", ".tex": "latex", ".sty": "latex",
}  # fmt: skip
"""Languages with a grammar, then languages with known comments or strings; of each, its usual ending first.

A header is C++, as in most editors: the C++ grammar also reads C headers.
"""

_LANGUAGE_OF_NAME = {
    "dockerfile": "dockerfile", "containerfile": "dockerfile", "makefile": "makefile", "gnumakefile": "makefile",
    "cmakelists.txt": "cmake", "jenkinsfile": "groovy", "gemfile": "ruby", "rakefile": "ruby", "vagrantfile": "ruby",
    "podfile": "ruby", ".bashrc": "shellscript", ".bash_profile": "shellscript", ".profile": "shellscript",
    ".zshrc": "shellscript", "go.mod": "gomod", "go.work": "gomod", "tsconfig.json": "jsonc",
    "jsconfig.json": "jsonc", "commit_editmsg": "git-commit",
}  # fmt: skip
"""Whole names of files, in lower case."""

_OTHER_NAMES = {
    "python": "py python3 starlark bzl bazel",
    "javascript": "js js2 cjs mjs",
    "javascriptreact": "jsx javascript.jsx js-jsx rjsx",
    "typescript": "ts",
    "typescriptreact": "tsx typescript.tsx",
    "go": "golang",
    "gomod": "go.mod go.work go.sum go-mod vgo gowork gosum",
    "rust": "rs rustic",
    "cpp": "c++",
    "csharp": "cs c-sharp c#",
    "objective-c": "objc objectivec",
    "objective-cpp": "objcpp objective-c++",
    "cuda-cpp": "cuda",
    "kotlin": "kt",
    "ruby": "rb enh-ruby",
    "perl": "cperl",
    "shellscript": "sh bash zsh ksh shell",
    "powershell": "ps1 pwsh",
    "sql": "mysql plsql pgsql postgres postgresql sqlite tsql mssql snowflake-sql jinja-sql",
    "json": "jsonl jsonlines js-json geojson",
    "jsonc": "json5",
    "yaml": "yml docker-compose dockercompose helm ansible github-actions-workflow azure-pipelines",
    "dockerfile": "docker containerfile",
    "makefile": "make makefile-gmake makefile-bsdmake automake",
    "terraform": "hcl tf tfvars terraform-vars terraform-stack terraform-deploy opentofu opentofu-vars",
    "proto3": "proto protobuf",
    "css": "postcss tailwindcss",
    "html": "xhtml mhtml vue-html htmldjango django-html jinja jinja-html jinja2 erb eruby eelixir heex html-eex "
    "phoenix-heex blade twig liquid nunjucks mustache handlebars hbs razor aspnetcorerazor astro angular htmlangular",
    "xml": "xsl xsd svg nxml plist",
    "markdown": "mdx rmd quarto gfm pandoc vimwiki",
    "plaintext": "text txt fundamental",
    "restructuredtext": "rst",
    "latex": "tex plaintex doctex context latex-expl3",
    "git-commit": "gitcommit neogitcommitmessage scminput",
    "clojure": "clojurescript clj",
    "lisp": "commonlisp emacs-lisp elisp",
    "ini": "dosini conf properties dotenv editorconfig gitconfig sshconfig desktop systemd",
    "vim": "viml",
}
"""By LSP language identifier, other names that editors and plugins send for the language, in lower case."""

_LANGUAGE_OF_ID = {name: language for language, names in _OTHER_NAMES.items() for name in names.split()}
_UNNAMED = ("", "plaintext")


def language_of(path: str | PurePath) -> str:
    """Return the LSP language identifier of a file by its name; "" for an unknown one."""
    name = PurePath(path).name.lower()
    named = _LANGUAGE_OF_NAME.get(name) or _LANGUAGE_OF_ENDING.get(PurePath(name).suffix)
    return named or _LANGUAGE_OF_NAME.get(name.partition(".")[0], "")  # Dockerfile.dev


def ending_of(language: str) -> str:
    """Return the usual ending of a language's files; "" for an unknown language."""
    known = known_language(language)
    return next((ending for ending, own in _LANGUAGE_OF_ENDING.items() if own == known), "")


def known_language(language: str, path: str = "") -> str:
    """Return the identifier that draftline knows a language by; an unknown one as it is.

    Editors without an extension for a language take its files for plain text. There, the file's name says more.

    Args:
        language: What a client calls the language: `sh`, `yaml.ansible`, `NeogitCommitMessage`.
        path: Path of the file; "" if unknown.
    """
    name = language.lower()
    known = _LANGUAGE_OF_ID.get(name) or _LANGUAGE_OF_ID.get(name.partition(".")[0]) or name.partition(".")[0]
    return (language_of(path) or known) if known in _UNNAMED else known


class OfLanguage:
    """Base of the frozen dataclasses about a document in a language: they have one name for it, whatever a client says.

    Attributes:
        language: What a client calls the language, which becomes the identifier that draftline knows it by.
        path: Path of the document.
    """

    __slots__ = ()
    language: str
    path: str

    def __post_init__(self) -> None:
        """Replace the client's name of the language."""
        if isinstance(self.language, str):  # the host's schema refuses anything else, with a sentence
            object.__setattr__(self, "language", known_language(self.language, self.path))
