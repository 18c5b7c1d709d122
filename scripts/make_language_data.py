"""Make open places in languages that the other open data lacks: `open_new_languages.jsonl.gz`.

The program that made the open data downloads the releases of `benchmarks/quality/packages.txt` and runs none of their
code. Its rules choose the places: a cursor inside a word of code, one of a file, the packages taking turns. Lines get
plain line feeds first, as in an editor's buffer: most C# has Windows line ends. `half_of` divides the packages: what is
chosen on one half is reported on the other.

Few packages have files in the languages of `ADDED_ENDINGS`: with `--clones`, the repositories of
`benchmarks/quality/repositories.txt` give places there, too. The places of the other languages are the same without.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path, PurePosixPath
from random import Random
from typing import Any

PACKAGES = Path(__file__).resolve().parents[1] / "benchmarks" / "quality" / "packages.txt"
"""One release a line: licence, registry:name, version."""
REPOSITORIES = PACKAGES.with_name("repositories.txt")
"""One public repository a line: licence, git:owner/name, commit."""
WANTED = 72
"""Number of places of each language."""
MOST = 40
"""Maximum number of places of a language that one package gives."""
ENDINGS = (
    "rb:ruby podspec:ruby rake:ruby php:php cs:csharp kt:kotlin kts:kotlin swift:swift sh:shellscript bash:shellscript "
    "bats:shellscript yml:yaml yaml:yaml html:html css:css scss:scss sql:sql md:markdown"
)
"""Endings of files, each with the identifier of its language."""
ADDED_ENDINGS = (
    "scala:scala lua:lua dart:dart ex:elixir exs:elixir hs:haskell zig:zig nix:nix tf:terraform jl:julia ml:ocaml "
    "mli:ocaml ps1:powershell psm1:powershell m:objective-c sol:solidity fs:fsharp svelte:svelte vue:vue xml:xml "
    "toml:toml mk:makefile dockerfile:dockerfile"
)
"""The same of languages that were added later."""
NAMED = {"Dockerfile": ".dockerfile", "Makefile": ".mk"}
"""Whole names of files, each with the ending that it gets here."""
LICENCES = {"MIT": b"Permission is hereby granted", "BSD": b"Redistribution and use", "Apache": b"Apache License"}
"""What the text of a licence has, by the first part of its name."""
KEYWORDS = (
    "begin begins else elsif elseif endif ensure require require_relative module then unless until when while yield "
    "echo foreach function global isset list namespace static array string object override open fileprivate guard "
    "internal lazy mutating some weak where data companion inline lateinit sealed suspend vararg done esac exit local "
    "base bool byte decimal delegate event explicit foreach implicit params partial readonly using virtual void "
    "alter column create drop exists from group having insert into join left limit order primary references returns "
    "right select table update values with"
)
"""Keywords of these languages besides those that the maker knows, in any case of their letters."""
ADDED_KEYWORDS = (
    "object given forall late factory required defmodule defp defmacro alias qualified newtype deriving instance "
    "comptime usingnamespace errdefer inherit assert resource variable module output mutable macro quote param process "
    "contract event emit mapping address memory storage calldata payable member open ifeq ifneq ifdef ifndef endif "
    "include define endef copy label workdir entrypoint expose user volume"
)
"""The same of the languages that were added later."""
HASH, DASHES, MARKUP = r"#[^\n]*", r"--[^\n]*", r"<!--.*?-->"


def not_code(maker: Any) -> dict[str, str]:  # noqa: ANN401 - a module
    """Return the comments and strings of each language, as the maker has those of its own."""
    slashes, quoted = maker.SLASHES, f"{maker.DOUBLE}|{maker.SINGLE}"
    hashes = dict.fromkeys(("ruby", "shellscript", "yaml"), f"{HASH}|{quoted}")
    braces = dict.fromkeys(("csharp", "kotlin", "swift", "css", "scss"), f"{slashes}|{quoted}")
    marked = dict.fromkeys(("html", "markdown"), MARKUP)
    hashed, commented, strings = f"{HASH}|{quoted}", f"{slashes}|{quoted}", r'"(?:\\.|[^"\\])*"'
    own = {"php": f"{slashes}|{hashed}", "sql": f"{DASHES}|{commented}", "toml": rf"\"\"\".*?\"\"\"|{hashed}"}
    own |= {"elixir": own["toml"], "julia": f"#=.*?=#|{own['toml']}", "powershell": f"<#.*?#>|{hashed}"}
    own |= {"lua": rf"--\[\[.*?\]\]|{DASHES}|\[\[.*?\]\]|{quoted}", "haskell": rf"\{{-.*?-\}}|{DASHES}|{strings}"}
    own |= {"nix": f"{HASH}|{slashes}|''.*?''|{strings}", "terraform": f"{HASH}|{commented}"}
    own |= {
        "zig": rf"\\\\[^\n]*|{commented}",
        "ocaml": rf"\(\*.*?\*\)|{strings}",
        "scala": rf"\"\"\".*?\"\"\"|{commented}",
    }
    own |= {"fsharp": rf"\(\*.*?\*\)|{slashes}|{strings}", "dart": f"'''.*?'''|{own['scala']}"}
    own |= dict.fromkeys(("objective-c", "solidity"), commented) | dict.fromkeys(("dockerfile", "makefile"), HASH)
    return hashes | braces | marked | own | dict.fromkeys(("vue", "svelte", "xml"), MARKUP)


def cloned(clone: Path, commit: str, endings: set[str], folder: Path) -> Path:
    """Return an archive of a repository's files with these endings, and the names of its licence as metadata."""

    def git(*command: str) -> bytes:
        run = ["git", "--literal-pathspecs", "-C", str(clone), *command]
        return subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout

    def is_read(name: str) -> bool:
        path = PurePosixPath(name)
        return path.suffix in endings or path.name in NAMED or name == "package.json"

    archive = Path(tempfile.mkdtemp(dir=folder), "clone.tar")
    names = git("ls-tree", "-r", "-z", "--name-only", commit).decode().split("\0")
    git("archive", "--prefix=repository/", f"--output={archive}", commit, "--", *filter(is_read, names))
    texts = [name for name in names if re.search(r"(?i)(^|/)(licen[sc]e|copying)[^/]*$", name)]
    if texts:
        text = git("show", f"{commit}:{min(texts, key=lambda name: (name.count('/'), name))}")
        named = " ".join(licence for licence, words in LICENCES.items() if words in text).encode()
        metadata = tarfile.TarInfo("repository/PKG-INFO")
        metadata.size = len(named)
        with tarfile.open(archive, "a") as tar:
            tar.addfile(metadata, io.BytesIO(named))
    return archive


def with_plain_lines(archive: Path, endings: set[str]) -> Path:
    """Return a copy of a release's archive whose source files have line feeds alone, and no byte order mark.

    PHP in a folder `dist` is source, too: there is nothing to build.
    """
    plain = archive.with_name("plain.tar")
    with tarfile.open(archive) as old, tarfile.open(plain, "w") as new:
        for member in old:
            if not member.isfile() or not (data := old.extractfile(member)):
                continue
            name = member.name + NAMED.get(PurePosixPath(member.name).name, "")
            text, suffix = data.read(), PurePosixPath(name).suffix
            if suffix in endings:
                text = text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
            kept = tarfile.TarInfo(name.replace("/dist/", "/", suffix == ".php"))
            kept.size = len(text)
            new.addfile(kept, io.BytesIO(text))
    return plain


def load_maker(path: Path) -> Any:  # noqa: ANN401 - a module
    """Return the maker's module, with the languages of these places in place of its own.

    Raises:
        SystemExit: There is no such program.
    """
    spec = spec_from_file_location("make_replay_data", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file. Give the path of make_replay_data.py.")
    maker: Any = module_from_spec(spec)
    sys.modules[spec.name] = maker  # its types look their module up
    spec.loader.exec_module(maker)
    maker.LANGUAGES = languages_of(f"{ENDINGS} {ADDED_ENDINGS}")
    maker.NOT_CODE = not_code(maker)
    maker.BACKENDS += " pbr/build"
    return maker


def languages_of(endings: str) -> dict[str, str]:
    """Return the language of each ending."""
    return {f".{ending}": language for ending, language in (each.split(":") for each in endings.split())}


def packages(maker: Any, listed: Path, clones: Path, folder: Path) -> list[Any]:  # noqa: ANN401 - a module
    """Return the packages of a list, with their source files."""
    found = list[Any]()
    for line in listed.read_text(encoding="utf-8").splitlines():
        licence, source, version = line.rsplit(" ", 2)
        registry, name = source.split(":", 1)
        if registry == "git":
            archive = cloned(clones / name, version, set(maker.LANGUAGES), folder)
        else:
            archive = maker.download(registry, name, version, folder)
        texts = maker.read_release(with_plain_lines(archive, set(maker.LANGUAGES)), licence)
        found.append(maker.Package(name, licence, [version, version], {}, texts))
        print(f"{name} {version}: {len(texts)} files", file=sys.stderr)
    return found


def places(maker: Any, found: list[Any], endings: str, keywords: str, seed: int) -> list[Any]:  # noqa: ANN401
    """Return the places that are chosen in the packages' files with these endings."""
    languages, names, records = languages_of(endings), keywords.split(), list[Any]()
    maker.KEYWORDS |= {form for name in names for form in (name, name.upper(), name.capitalize())}
    for package in found:
        texts = {path: text for path, text in package.after.items() if PurePosixPath(path).suffix in languages}
        records += maker.cursors(package._replace(after=texts), Random(f"{seed}:{package.name}"))
    wanted = dict.fromkeys(dict.fromkeys(languages.values()), WANTED)
    chosen = list[Any](maker.select(records, wanted, MOST, Random(f"{seed}:new_languages")))
    for record, (name, ending) in ((record, pair) for record in chosen for pair in NAMED.items()):
        record["path"] = record["path"].replace(name + ending, name)
    return chosen


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maker", metavar="MAKER", type=Path, help="make_replay_data.py, which made the open data")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the file that it writes")
    parser.add_argument("--clones", type=Path, help="folder with a clone OWNER/NAME of each repository")
    given = parser.parse_args()
    maker = load_maker(given.maker)
    with tempfile.TemporaryDirectory() as folder:
        released = packages(maker, PACKAGES, Path(folder), Path(folder))
        in_clones = packages(maker, REPOSITORIES, given.clones, Path(folder)) if given.clones else []
    chosen = places(maker, released, ENDINGS, KEYWORDS, 0)
    chosen += places(maker, [*released, *in_clones], ADDED_ENDINGS, ADDED_KEYWORDS, 1)
    body = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in chosen)
    given.folder.mkdir(parents=True, exist_ok=True)
    path = given.folder / "open_new_languages.jsonl.gz"
    path.write_bytes(gzip.compress(body.encode(), mtime=0))
    print(path.name, len(chosen), dict(Counter(record["language"] for record in chosen)))


if __name__ == "__main__":
    main()
