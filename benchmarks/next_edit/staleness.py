"""`python -m benchmarks.next_edit.staleness`: is a next edit ever applied to a text that it does not name?

Random edits change two open files of a release in turn: words are replaced, characters typed, lines pasted and deleted,
edits undone. In each pause the server proposes everything that the rules find, in either file. The user goes on typing
in both while it works, or before an edit is applied. A client with texts of its own applies the edits that have its
version, and counts those whose text is not there (`wrong_text`). The parser, the model and the gate, which only leave
edits out, take no part.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lsprotocol import types

from benchmarks.data import read_records
from completion.edits import NextEdit, NextEditRequest, NextEdits
from completion.next_edit.candidates import candidates
from completion.next_edit.finder import without_overlaps
from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.editing.next_edits import NextEditor

FILE = "open_release_replay.jsonl.gz"
"""Data file: files in two consecutive releases of open packages."""
MAX_LINES = 60
"""Maximum number of lines of a file: more only cost time."""
EDITS_OF_FILE = 200
"""Number of edits after which the next file is opened."""
_NEW_NAMES = ("fastjson", "total", "größe", "x", "𝓍𝓎", "name_of_it")
_TYPED = ("(", ")", "\n", "    ", "a", ".", '"', "# 𝄞 ", "\r\n", "return value", "")
_WORD = re.compile(r"[^\W\d]\w+")
_LINE_END = re.compile(r"\r\n|\n|\r")


class Editor:
    """A client with its own copy of the text, which it changes at random.

    Attributes:
        edits: Number of edits so far.
    """

    def __init__(self, random_: random.Random, record: Mapping[str, Any], line_end: str) -> None:
        self._random = random_
        self.text = line_end.join(record["before"].splitlines()[:MAX_LINES]) + line_end
        self.edits = 0
        self._undo: list[tuple[int, str, str]] = []
        documents = DocumentStore()
        item = types.TextDocumentItem(f"file:///{record['path']}", record["language"], 1, self.text)
        self.document: Document = documents.open(item)
        self.version = 1

    def edit(self) -> None:
        """Make one random edit."""
        start, gone, come = self._choose()
        self._undo = [*self._undo[-8:], (start, come, gone)]
        self.replace([(start, start + len(gone), come)])
        self.edits += 1

    def replace(self, changes: Sequence[tuple[int, int, str]]) -> None:
        """Replace spans of the text, which are in order and do not overlap, and tell the server."""
        told: list[types.TextDocumentContentChangeEvent] = []
        for start, end, text in reversed(changes):
            span = types.Range(self._position(start), self._position(end))
            told.append(types.TextDocumentContentChangePartial(span, text))
            self.text = self.text[:start] + text + self.text[end:]
        self.version += 1
        self.document.apply(told, self.version)

    def offset(self, position: Mapping[str, int]) -> int:
        """Return the offset of an LSP position in this client's text."""
        starts = [0, *(match.end() for match in _LINE_END.finditer(self.text))]
        line = self.text[starts[position["line"]] :].encode("utf-16-le", "surrogatepass")
        return starts[position["line"]] + len(line[: 2 * position["character"]].decode("utf-16-le", "surrogatepass"))

    def _position(self, offset: int) -> types.Position:
        starts = [0, *(match.end() for match in _LINE_END.finditer(self.text, 0, offset))]
        return types.Position(len(starts) - 1, len(self.text[starts[-1] : offset].encode("utf-16-le")) // 2)

    def _choose(self) -> tuple[int, str, str]:
        """Return the offset, the removed and the inserted text of an edit."""
        kind = self._random.random()
        words = list(_WORD.finditer(self.text))
        if kind < 0.5 and words:  # replace a word, which most proposals follow
            word = self._random.choice(words)
            return word.start(), word.group(), self._random.choice(_NEW_NAMES)
        if kind < 0.6 and self._undo and self._can_undo(*self._undo[-1][:2]):
            return self._undo.pop()
        at = self._inside(self._random.randrange(len(self.text) + 1))
        if kind < 0.8:
            return at, "", self._random.choice(_TYPED)
        lines = [self.text[match.end() :].partition("\n")[0] + "\n" for match in _LINE_END.finditer(self.text)]
        if kind < 0.9 and lines and len(lines) < 2 * MAX_LINES:  # paste a line
            return at, "", self._random.choice(lines)
        end = self._inside(min(len(self.text), at + self._random.randrange(80)))
        return at, self.text[at:end], ""

    def _can_undo(self, start: int, there: str) -> bool:
        """Return whether the text is still there, and not within a line end that was made since."""
        ends = start, start + len(there)
        return self.text.startswith(there, start) and all(self._inside(end) == end for end in ends)

    def _inside(self, offset: int) -> int:
        """Return the offset, moved out of a line end of two characters: LSP has no position there."""
        return offset - 1 if self.text[max(0, offset - 1) : offset + 1] == "\r\n" else offset


class Rules:
    """Proposes everything that the rules find, while the user may go on typing in each of the files."""

    def __init__(self, editors: Sequence[Editor], random_: random.Random) -> None:
        self._editors, self._random = editors, random_

    async def find(self, request: NextEditRequest) -> NextEdits:
        """Return the candidates that do not overlap."""
        found = candidates(request.lines, request.edits, elsewhere=request.elsewhere)
        if not request.elsewhere and self._random.random() < 0.5:
            found = []  # so that the other file's turn comes
        if self._random.random() < 0.3:
            self._random.choice(self._editors).edit()
        edits = [NextEdit(each.line, each.old, each.new, 1.0) for each in found]
        return NextEdits(tuple(without_overlaps(edits)))


async def replay(record: Mapping[str, Any], seed: int, edits: int) -> Counter[str]:
    """Make random edits in a file and a copy of it, and return how many edits of each fate there were."""
    random_ = random.Random(seed)
    copy = {**record, "path": f"copy/{record['path']}"}
    editors = [Editor(random_, each, random_.choice(("\n", "\r\n"))) for each in (record, copy)]
    next_editor = NextEditor(Rules(editors, random_).find, lambda _document: "")
    counts: Counter[str] = Counter()
    while sum(editor.edits for editor in editors) < edits:
        here, other = random_.sample(editors, 2)
        for _ in range(random_.randint(1, 4)):
            here.edit()
        offers = await next_editor.edits(here.document, others=[other.document], elsewhere=True)
        if offers and random_.random() < 0.3:
            random_.choice(editors).edit()
        messages = [
            offer.message() for offer in offers[: random_.choice((1, 1, len(offers)))]
        ]  # some clients apply all
        named = next((each for each in editors if offers and each.document.uri == offers[0].uri), here)
        counts += _apply(named, messages)
        counts["pauses"] += 1
        counts["elsewhere"] += named is other
        counts["same_text"] += all(editor.document.lines.text() == editor.text for editor in editors)
    counts["edits"] = sum(editor.edits for editor in editors)
    return counts


def _apply(editor: Editor, messages: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Apply the edits that have the client's version, whatever the text is, and count those with another text."""
    counts: Counter[str] = Counter(offered=len(messages))
    changes = []
    for message in messages:
        if message["textDocument"]["version"] != editor.version:
            counts["dropped"] += 1
            continue
        start, end = (editor.offset(message["range"][side]) for side in ("start", "end"))
        counts["applied"] += 1
        counts["wrong_text"] += editor.text[start:end] != message["oldText"]
        changes.append((start, end, message["text"]))
    if changes:
        editor.replace(sorted(changes))
    return counts


def run(records: Sequence[Mapping[str, Any]], edits: int, seed: int) -> dict[str, int]:
    """Make a number of random edits and return the counts by name."""
    if not records:
        raise SystemExit("The data has no files. Name another folder with --data-dir.")
    total: Counter[str] = Counter()
    while total["edits"] < edits:
        seed += 1
        left = min(EDITS_OF_FILE, edits - total["edits"])
        total += asyncio.run(replay(records[seed % len(records)], seed, left))
    names = ("edits", "pauses", "elsewhere", "same_text", "offered", "dropped", "applied", "wrong_text")
    return {name: total[name] for name in names}


def main() -> None:
    """Print the counts as JSON. The exit status is 1 if an edit was applied to another text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.next_edit.staleness", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--edits", type=int, default=100_000, help="number of random edits (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=25, help="seed of what is random (default: %(default)s)")
    given = parser.parse_args()
    counts = run(read_records(FILE, given.data_dir), given.edits, given.seed)
    print(json.dumps(counts))
    raise SystemExit(counts["wrong_text"] > 0)


if __name__ == "__main__":
    main()
