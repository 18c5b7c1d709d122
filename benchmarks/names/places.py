"""Places where a name of other code stands: after a dot, in an import, first in a call; of releases in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from benchmarks.quality.sets import half_of
from completion.language_ids import language_of
from completion.syntax.brackets import enclosing_literal
from completion.workspace.context import MAX_FILE_CHARACTERS

KINDS = {
    "member": re.compile(r"(?<=[\w)\]])\??\.(?=[A-Za-z_])"),
    "import": re.compile(r"^(?:from [\w.]+ import |import (?:type )?\{ )(?=[A-Za-z_])", re.MULTILINE),
    "call": re.compile(r"(?<=\w)\((?=[A-Za-z_])"),
}
"""What is right before the cursor, by kind."""
NAME = re.compile(r"[A-Za-z_$][\w$]*")
"""The name at a place."""
MAX_FILES = 60
"""Maximum number of files of a package that its workspace has."""
MAX_CHARACTERS = 60_000
"""Maximum length of a file with a place."""

_SHARES = ("member", "member", "member", "import", "call")  # kinds of the places of a package, in turn
_DEFINES = re.compile(
    r"\s*(?:@|(?:export |async |public |private |static |abstract )*(?:def|class|function|interface)\b)"
)
_SKIPPED = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|vendor|_vendor|dist|docs?|examples?)(?:/|$)|\.d\.ts$|\.test\."
)


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor in a file of a package; the rest of its line is missing.

    Attributes:
        path: Path of the file within the folder of the package.
        package: Name of the package, whose hash gives the half.
        kind: One of `KINDS`.
        name: The name that stands there.
        reference: Rest of the line.
    """

    path: str
    package: str
    kind: str
    language: str
    prefix: str
    suffix: str
    name: str
    reference: str

    @property
    def id(self) -> str:
        """Name of the place."""
        return f"{self.package}:{self.path}:{len(self.prefix)}"

    def typed(self, count: int) -> Place:
        """Return the place with the cursor after the first characters of the name."""
        return replace(self, prefix=self.prefix + self.reference[:count], reference=self.reference[count:])


def package_files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """Return the files of a package that may have places, in order."""
    found = (path for ending in endings for path in folder.rglob(f"*{ending}"))
    return sorted(path for path in found if not _SKIPPED.search(path.relative_to(folder).as_posix()))


def places_of(package: str, folder: Path, endings: tuple[str, ...], count: int) -> Iterator[Place]:
    """Yield places of a package, at most one of a file; its name is the seed."""
    draw = Random(package)
    files = package_files(folder, endings)
    draw.shuffle(files)
    found = 0
    for path in files:
        if found == count:
            return
        text = path.read_text(encoding="utf-8", errors="replace")
        if len(text) > MAX_CHARACTERS or text.count("\n") < 20:
            continue
        place = _place(package, path.relative_to(folder).as_posix(), text, _SHARES[found % len(_SHARES)], draw)
        if place is not None:
            found += 1
            yield place


def _place(package: str, path: str, text: str, kind: str, draw: Random) -> Place | None:
    matches = list(KINDS[kind].finditer(text))
    draw.shuffle(matches)
    language = language_of(path)
    for match in matches[:20]:
        at = match.end()
        line_start = text.rfind("\n", 0, at) + 1
        reference, line_break, below = text[at:].partition("\n")
        name = NAME.match(reference)
        if name is None or _DEFINES.match(text[line_start:at]) or enclosing_literal(text[:at], language):
            continue
        return Place(path, package, kind, language, text[:at], line_break + below, name[0], reference)
    return None


def half(package: str) -> int:
    """Return 0 or 1 by a hash of the package."""
    return half_of(f"{package}==")


def sources(folder: Path, package: str, endings: tuple[str, ...]) -> dict[str, str]:
    """Return the texts of a package's files by path, as a workspace has them."""
    texts = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in package_files(folder, endings)[:MAX_FILES]
    }
    return {f"{package}/{path}": text for path, text in texts.items() if len(text) <= MAX_FILE_CHARACTERS}
