"""Real source files for the grammar benchmark, from pinned releases on PyPI and npm or from a folder.

The releases are those below, and those of the places in further languages (`benchmarks/quality/packages.txt`).
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from completion.language_ids import language_of
from completion.paths import cache_dir
from completion.syntax.languages import parsed_row, true_language
from completion.syntax.trees import parse

PYPI = (
    "pybind11==3.0.4",
    "nanobind==3.0.1",
    "psutil==7.2.0",
    "pydantic-core==2.50.0",
    "tokenizers==0.23.1",
    "pyjnius==1.7.0",
    "jpype1==1.7.0",
    "cog==0.22.0",
    "shapely==2.1.2",
    "msgpack==1.2.4",
    "pymongo==4.20.0",
)
NPM = (
    "rxjs@7.8.2",
    "effect@4.1.0",
    "express@5.3.0",
    "webpack@5.112.0",
    "@tanstack/query-core@5.108.0",
    "react-native-screens@4.28.0",
    "@capacitor/android@8.5.0",
)
_MORE = Path(__file__).resolve().parents[1] / "quality" / "packages.txt"
_SIZES = range(200, 40_000)
# pip asks the build backend of a source distribution for its metadata, which PKG-INFO already has. A stand-in for each
# backend returns that metadata. It runs no code of the package and needs no compiler.
_BACKENDS = (
    "setuptools.build_meta",
    "flit_core.buildapi",
    "hatchling.build",
    "scikit_build_core.build",
    "maturin",
    "mesonpy",
)
_STAND_IN = """
import email, pathlib, sys
__legacy__ = sys.modules[__name__]  # the name that pip uses for a project without pyproject.toml
def get_requires_for_build_wheel(config_settings=None):
    return []
def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    text = pathlib.Path("PKG-INFO").read_text(encoding="utf-8")
    fields = email.message_from_string(text)
    name = f"{fields['Name'].replace('-', '_')}-{fields['Version']}.dist-info"
    folder = pathlib.Path(metadata_directory, name)
    folder.mkdir()
    (folder / "METADATA").write_text(text, encoding="utf-8")
    return name
"""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file; `valid` tells whether tree-sitter parses it without an error."""

    name: str
    language: str
    text: bytes


def valid_sources(folder: Path | None, seed: int) -> dict[str, list[SourceFile]]:
    """Return files by language in random order. Without a folder the pinned releases are downloaded into the cache.

    The files are not parsed here: see `valid`.

    Raises:
        SystemExit: The folder has no source file of a suitable size.
    """
    texts = _read_folder(folder) if folder is not None else _read_archives(fetch())
    by_language: dict[str, list[SourceFile]] = {}
    for name, text in texts:
        language = true_language(language_of(name), text.decode("utf-8", "replace"))
        by_language.setdefault(language, []).append(SourceFile(name, language, text))
    for files in by_language.values():
        files.sort(key=lambda file: file.name)
        random.Random(seed).shuffle(files)
    if not by_language:
        raise SystemExit(f"{folder} has no source file of {_SIZES.start:,} to {_SIZES.stop:,} bytes.")
    return by_language


def valid(file: SourceFile) -> bool:
    """Return whether tree-sitter parses the file without an error."""
    tree = parse(file.text, file.language)
    return tree is not None and not tree.root_node.has_error


def fetch() -> list[Path]:
    """Return the archives of the pinned releases. Archives in the cache are not downloaded again."""
    folder = cache_dir() / "benchmark-sources"
    stand_ins = folder / "backends"
    _write_stand_ins(stand_ins)
    more = [line.split()[1:] for line in _MORE.read_text(encoding="utf-8").splitlines()]
    pypi = (*PYPI, *(f"{name[5:]}=={version}" for name, version in more if name.startswith("pypi:")))
    npm = (*NPM, *(f"{name[4:]}@{version}" for name, version in more if name.startswith("npm:")))
    releases = {requirement: folder / requirement.replace("/", "+") for requirement in (*pypi, *npm)}
    for requirement in pypi:
        _fetch(releases[requirement], _pip(requirement), os.environ | {"PYTHONPATH": str(stand_ins)})
    for requirement in npm:
        pack = ["npm", "pack", "--silent", "--ignore-scripts", requirement]
        _fetch(releases[requirement], pack, dict(os.environ))
    return sorted(path for release in releases.values() for path in release.iterdir())


def _pip(requirement: str) -> list[str]:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--use-pep517"]
    return [*pip, "--no-build-isolation", requirement]


def _fetch(folder: Path, command: list[str], environment: dict[str, str]) -> None:
    if folder.is_dir() and any(folder.iterdir()):
        return
    print(f"downloading {folder.name}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        try:
            subprocess.run(command, cwd=unfinished, env=environment, check=True, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(
                f"{folder.name} could not be downloaded: {error}. Name a folder of source files with --sources, or pass"
                " --only typed,completions."
            ) from None
        shutil.copytree(unfinished, folder, dirs_exist_ok=True)


def _write_stand_ins(folder: Path) -> None:
    for backend in _BACKENDS:
        package = folder
        for part in backend.split("."):
            package /= part
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").write_text(_STAND_IN, encoding="utf-8")


def _read_archives(archives: list[Path]) -> Iterator[tuple[str, bytes]]:
    for archive in archives:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and _has_grammar(member.name) and member.size in _SIZES:
                    stream = tar.extractfile(member)
                    if stream is not None:
                        yield f"{archive.name}:{member.name}", stream.read()


def _read_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if _has_grammar(path.name) and path.is_file() and path.stat().st_size in _SIZES:
            yield str(path.relative_to(folder)), path.read_bytes()


def _has_grammar(name: str) -> bool:
    return parsed_row(language_of(name)) is not None
