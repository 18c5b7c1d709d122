"""Make open places in languages that the other open data lacks: `open_new_languages.jsonl.gz`.

The program that made the open data downloads the releases of `benchmarks/quality/packages.txt` and runs none of their
code. Its rules choose the places: a cursor inside a word of code, one of a file, the packages taking turns. Lines get
plain line feeds first, as in an editor's buffer: most C# has Windows line ends. `half_of` divides the packages: what is
chosen on one half is reported on the other.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
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
WANTED = 72
"""Number of places of each language."""
MOST = 40
"""Maximum number of places of a language that one package gives."""
ENDINGS = (
    "rb:ruby podspec:ruby rake:ruby php:php cs:csharp kt:kotlin kts:kotlin swift:swift sh:shellscript bash:shellscript "
    "bats:shellscript yml:yaml yaml:yaml html:html css:css scss:scss sql:sql md:markdown"
)
"""Endings of files, each with the identifier of its language."""
KEYWORDS = (
    "begin begins else elsif elseif endif ensure require require_relative module then unless until when while yield "
    "echo foreach function global isset list namespace static array string object override open fileprivate guard "
    "internal lazy mutating some weak where data companion inline lateinit sealed suspend vararg done esac exit local "
    "base bool byte decimal delegate event explicit foreach implicit params partial readonly using virtual void "
    "alter column create drop exists from group having insert into join left limit order primary references returns "
    "right select table update values with"
)
"""Keywords of these languages besides those that the maker knows, in any case of their letters."""
HASH, DASHES, MARKUP = r"#[^\n]*", r"--[^\n]*", r"<!--.*?-->"


def not_code(maker: Any) -> dict[str, str]:  # noqa: ANN401 - a module
    """Return the comments and strings of each language, as the maker has those of its own."""
    slashes, quoted = maker.SLASHES, f"{maker.DOUBLE}|{maker.SINGLE}"
    hashes = dict.fromkeys(("ruby", "shellscript", "yaml"), f"{HASH}|{quoted}")
    braces = dict.fromkeys(("csharp", "kotlin", "swift", "css", "scss"), f"{slashes}|{quoted}")
    marked = dict.fromkeys(("html", "markdown"), MARKUP)
    return hashes | braces | marked | {"php": f"{slashes}|{HASH}|{quoted}", "sql": f"{DASHES}|{slashes}|{quoted}"}


def with_plain_lines(archive: Path, endings: set[str]) -> Path:
    """Return a copy of a release's archive whose source files have line feeds alone, and no byte order mark.

    PHP in a folder `dist` is source, too: there is nothing to build.
    """
    plain = archive.with_name("plain.tar")
    with tarfile.open(archive) as old, tarfile.open(plain, "w") as new:
        for member in old:
            if not member.isfile() or not (data := old.extractfile(member)):
                continue
            text, suffix = data.read(), PurePosixPath(member.name).suffix
            if suffix in endings:
                text = text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
            kept = tarfile.TarInfo(member.name.replace("/dist/", "/", suffix == ".php"))
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
    maker.LANGUAGES = {f".{ending}": language for ending, language in (each.split(":") for each in ENDINGS.split())}
    maker.NOT_CODE = not_code(maker)
    maker.BACKENDS += " pbr/build"
    names = KEYWORDS.split()
    maker.KEYWORDS |= {form for name in names for form in (name, name.upper(), name.capitalize())}
    return maker


def places(maker: Any, folder: Path) -> list[dict[str, Any]]:  # noqa: ANN401 - a module
    """Return a place of each source file of all packages."""
    found = list[dict[str, Any]]()
    for line in PACKAGES.read_text(encoding="utf-8").splitlines():
        licence, source, version = line.rsplit(" ", 2)
        registry, name = source.split(":", 1)
        archive = with_plain_lines(maker.download(registry, name, version, folder), set(maker.LANGUAGES))
        texts = maker.read_release(archive, licence)
        package = maker.Package(name, licence, [version, version], {}, texts)
        found += maker.cursors(package, Random(f"0:{name}"))
        print(f"{name} {version}: {len(texts)} files", file=sys.stderr)
    return found


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maker", metavar="MAKER", type=Path, help="make_replay_data.py, which made the open data")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the file that it writes")
    given = parser.parse_args()
    maker = load_maker(given.maker)
    with tempfile.TemporaryDirectory() as folder:
        found = places(maker, Path(folder))
    wanted = dict.fromkeys(dict.fromkeys(maker.LANGUAGES.values()), WANTED)
    chosen = maker.select(found, wanted, MOST, Random("0:new_languages"))
    body = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in chosen)
    given.folder.mkdir(parents=True, exist_ok=True)
    path = given.folder / "open_new_languages.jsonl.gz"
    path.write_bytes(gzip.compress(body.encode(), mtime=0))
    print(path.name, len(chosen), dict(Counter(record["language"] for record in chosen)))


if __name__ == "__main__":
    main()
