"""The places in new languages are made by the maker's rules from files with plain line feeds, and missed by name."""

import subprocess
import sys
import tarfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from benchmarks.data import read_file
from benchmarks.quality.sets import NEW_LANGUAGES, open_tasks

SCRIPT = [sys.executable, Path(__file__).parents[2] / "scripts" / "make_language_data.py"]
MAKER = r"""
import io, re, tarfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

SLASHES, DOUBLE, SINGLE = r"//[^\n]*", r'"[^"]*"', r"'[^']*'"
BACKENDS, KEYWORDS, LANGUAGES, NOT_CODE = "a/b", {"public"}, {}, {}

class Package(NamedTuple):
    name: str
    licence: str
    versions: list
    before: dict
    after: dict

def download(registry, name, version, folder):
    archive = folder / f"{name.replace('/', '+')}.tar"
    with tarfile.open(archive, "w") as tar:
        php = "<?php\r\n// word\r\nforeach ($items as $a);"
        for path, text in (("package/dist/a.php", php), ("package/b.js", "x")):
            entry = tarfile.TarInfo(path)
            data = b"\xef\xbb\xbf" + text.encode()
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return archive

def read_release(archive, licence):
    with tarfile.open(archive) as tar:
        found = {m.name: tar.extractfile(m).read().decode() for m in tar}
    return {path: text for path, text in found.items() if PurePosixPath(path).suffix in LANGUAGES}

def cursors(package, rng):
    for path, text in package.after.items():
        language = LANGUAGES[PurePosixPath(path).suffix]
        words = re.finditer(NOT_CODE[language] + r"|(\w{4,})", text)
        (word,) = [m for m in words if m[1] and m[1] not in KEYWORDS]
        yield {"id": f"{package.name}=={package.versions[1]}:{path}", "language": language, "path": path,
               "prefix": text[: word.start() + 1], "suffix": "", "reference": text[word.start() + 1 :]}

def select(records, wanted, most, rng):
    return records[:1]
"""


def test_places_are_inside_words_of_code_and_lines_end_with_line_feeds(tmp_path):
    maker = tmp_path / "maker.py"
    maker.write_text(MAKER)
    done = subprocess.run([*SCRIPT, maker, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "open_new_languages.jsonl.gz 1 {'php': 1}"
    (place,) = read_file(tmp_path / "open_new_languages.jsonl.gz")
    assert (place["prefix"], place["reference"]) == ("<?php\n// word\nforeach ($i", "tems as $a);")
    assert place["path"] == "package/a.php"
    (task,) = open_tasks([NEW_LANGUAGES], str(tmp_path))
    assert (task.dataset, task.language) == ("new_languages", "php")


def test_a_clone_is_a_package_that_names_the_licence_of_its_text(tmp_path):
    spec = spec_from_file_location("make_language_data", SCRIPT[1])
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    clone = tmp_path / "owner" / "name"
    clone.mkdir(parents=True)
    (clone / "LICENSE.txt").write_text("Permission is hereby granted, free of charge")
    (clone / "Makefile").write_bytes(b"all:\r\n\tmake\r\n")
    git = ["git", "-C", clone, "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "one"]):
        subprocess.run([*git, *command], check=True)
    with tarfile.open(script.with_plain_lines(script.cloned(clone, "HEAD", {".mk"}, tmp_path), {".mk"})) as tar:
        texts = {member.name: tar.extractfile(member).read() for member in tar}
    assert texts["repository/PKG-INFO"] == b"MIT"
    assert texts["repository/Makefile.mk"] == b"all:\n\tmake\n"


def test_without_the_maker_or_its_data_the_message_says_what_to_do(tmp_path):
    done = subprocess.run([*SCRIPT, tmp_path / "none", tmp_path], capture_output=True, text=True, check=False)
    assert "none is no Python file" in done.stderr
    with pytest.raises(SystemExit, match="make_language_data"):
        list(open_tasks([NEW_LANGUAGES], str(tmp_path)))
