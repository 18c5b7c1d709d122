"""Texts at cursors of the open data: what was written there, starts of it, and texts that break the document."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from benchmarks.data import read_records
from completion.syntax.languages import LANGUAGES, true_language

DATA = ("open_cursor_positions.jsonl.gz", "open_repo_context.jsonl.gz")
"""Files with cursors, in the order in which they are used."""
_MAX_PREFIX = 60_000  # characters before the cursor
_STARTS = 2  # of one reference
_WORD_OR_MARKS = re.compile(r"\w+|[^\w\s]+")


class Kind(StrEnum):
    """What a text is: what was written, its start, or it without a bracket, with one more, or with the next line."""

    WHOLE = "whole"
    START = "start"
    REMOVED = "removed"
    ADDED = "added"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Triple:
    """A text at a cursor.

    Attributes:
        language: LSP language identifier.
        kind: What the text is.
        prefix: Text before the cursor.
        text: The text.
        suffix: Text after the cursor.
    """

    language: str
    kind: Kind
    prefix: str
    text: str
    suffix: str


def places(cursors: int, languages: Collection[str] = (), data_dir: str | None = None) -> Iterator[list[Triple]]:
    """Yield the triples of each cursor, at most `cursors` of each language; of all languages if none is named."""
    used = Counter[str]()
    for name in DATA:
        for record in read_records(name, data_dir):
            language = record["language"]
            if used[language] < cursors and (not languages or language in languages) and _is_usable(record):
                used[language] += 1
                yield [*triples(record)]


def _is_usable(record: dict[str, Any]) -> bool:
    language, prefix, suffix = record["language"], record["prefix"], record["suffix"]
    is_short = len(prefix) <= _MAX_PREFIX and bool(record["reference"].strip())
    return is_short and language in LANGUAGES and true_language(language, prefix, suffix) == language


def triples(record: dict[str, Any]) -> Iterator[Triple]:
    """Yield the triples of one record; the same ones in each run."""
    rng = random.Random(record["id"])
    text, suffix = record["reference"], record["suffix"]

    def triple(kind: Kind, changed: str) -> Triple:
        return Triple(record["language"], kind, record["prefix"], changed, suffix)

    yield triple(Kind.WHOLE, text)
    ends = [each.end() for each in _WORD_OR_MARKS.finditer(text) if each.end() < len(text)]
    for end in sorted(rng.sample(ends, min(_STARTS, len(ends)))):
        yield triple(Kind.START, text[:end])
    brackets = [each.start() for each in re.finditer(r"[()\[\]{}]", text)]
    if brackets:
        at = rng.choice(brackets)
        yield triple(Kind.REMOVED, text[:at] + text[at + 1 :])
    at = rng.choice([0, *ends, len(text)])
    yield triple(Kind.ADDED, text[:at] + rng.choice("()[]{}") + text[at:])
    below = next((line for line in suffix.split("\n")[1:] if line.strip()), "")
    if below:
        yield triple(Kind.REPEATED, f"{text}\n{below}")
