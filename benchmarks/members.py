"""`python -m benchmarks.members`: do member names that jedi knows after a dot make the model's choice better?

A cursor is placed behind a dot of each Python record of the open data, the rest of its line is the reference. jedi is
asked for the names in the document as it then stands, and every token that begins or goes on with one of them gets the
same bonus on its logit while the name is written. Measured: how often the name and the line are right, with and
without; how often jedi knows anything, and the right name; how long it takes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import jedi
import numpy as np
from rich.console import Console
from rich.table import Table
from tree_sitter import Node

from benchmarks.quality.tasks import FILES, open_tasks, sample
from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.grammar.grammar import load_grammar
from completion.model.causal_model import CausalModel, KVCache, Logits
from completion.model.loading import load_model
from completion.model.tokenizer import CodeTokenizer
from completion.prompt.healing import heal
from completion.request import CompletionRequest, Mode
from drafting.arrays import FloatArray, IntArray

BONUSES = (0.0, 1.0, 2.0, 4.0)
_NAME = re.compile(rb"\w*")
# What the records import is not installed here: jedi sees the document and the standard library.
_PROJECT = jedi.Project(sysconfig.get_path("stdlib"), sys_path=[sysconfig.get_path("stdlib")], smart_sys_path=False)


@dataclass(frozen=True, slots=True)
class Member:
    """A cursor behind a dot.

    Attributes:
        name: The member that stands there.
        line: The rest of the line, the name included.
    """

    request: CompletionRequest
    name: str
    line: str


class BonusModel:
    """A model whose scores favour some names, for decoding without drafts: each score has one new row that counts."""

    def __init__(self, model: CausalModel, tokenizer: CodeTokenizer) -> None:
        self._model, self._tokenizer = model, tokenizer
        self.shape = model.shape
        self._wanted: list[bytes] = []
        self._bonus = 0.0
        self._written: bytes | None = None

    def favour(self, forced: bytes, names: Sequence[str], bonus: float) -> None:
        """From the next score on, until one of the names is written behind `forced`."""
        self._wanted = [forced + name.encode() for name in names]
        self._bonus, self._written = bonus, None

    def new_cache(self, capacity: int) -> KVCache:
        """The model's own."""
        return self._model.new_cache(capacity)

    def prefill(self, tokens: IntArray, slots: IntArray, cache: KVCache, logits_rows: Sequence[int] = ()) -> Logits:
        """The model's own."""
        return self._model.prefill(tokens, slots, cache, logits_rows)

    def score(self, tokens: IntArray, parents: IntArray, cache: KVCache) -> Logits:
        """The model's scores, with the bonus on the last row."""
        self._written = b"" if self._written is None else self._written + self._tokenizer.token_bytes(int(tokens[-1]))
        logits = self._model.score(tokens, parents, cache)
        favoured = self._favoured(self._written) if self._bonus else []
        return BonusLogits(logits, len(tokens) - 1, favoured, self._bonus) if favoured else logits

    def superpose(self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache) -> Logits:
        """The model's own."""
        return self._model.superpose(tokens, weights, parents, cache)

    def _favoured(self, written: bytes) -> list[int]:
        """Tokens that go on with a wanted text that `written` begins; none where it is one already."""
        if written in self._wanted:
            return []
        rests = {text[len(written) :] for text in self._wanted if text.startswith(written)}
        found = set()
        for rest in rests:
            for token in self._tokenizer.tokens_with_prefix(rest).tolist():
                data = self._tokenizer.token_bytes(token)
                if len(data) <= len(rest) or _ends(data, rest):
                    found.add(token)
        return sorted(found)


def _ends(data: bytes, name: bytes) -> bool:
    """Whether the name ends within a token's bytes."""
    return not _NAME.match(data, len(name)).group()  # type: ignore[union-attr]  # the pattern matches everywhere


@dataclass(frozen=True, slots=True)
class BonusLogits:
    """Logits whose last row has a bonus on some tokens."""

    logits: Logits
    last: int
    favoured: list[int]
    bonus: float

    def argmax(self) -> IntArray:
        """The best token of each row.  # [rows]."""
        best = np.array(self.logits.argmax())
        best[self.last] = int(self.row(self.last).argmax())
        return best

    def top(self, count: int) -> tuple[IntArray, FloatArray]:
        """Without the bonus: only drafters look at it.  # [rows, count] twice."""
        return self.logits.top(count)

    def row(self, index: int) -> FloatArray:
        """One row.  # [vocabulary_size]."""
        row = self.logits.row(index)
        if index == self.last:
            row = row.copy()
            row[self.favoured] += self.bonus
        return row


def members(count: int, data_dir: str | None) -> list[Member]:
    """One member cursor of each of at most `count` Python records of a data set, drawn by a hash of its name."""
    grammar = load_grammar("python")
    assert grammar is not None
    found = []
    for task in sample([task for task in open_tasks(list(FILES), data_dir) if task.language == "python"], count):
        text = (task.prefix + task.reference + task.document_suffix).encode()
        dots = [dot for dot in _dots(grammar.parse(text).root_node) if dot > len(text) // 4]
        if not dots:
            continue
        at = dots[int(hashlib.sha256(task.id.encode()).hexdigest(), 16) % len(dots)]
        line_end = text.find(b"\n", at) if b"\n" in text[at:] else len(text)
        name = _NAME.match(text, at).group().decode()  # type: ignore[union-attr]  # as above
        prefix, line, suffix = (
            part.decode("utf-8", "replace") for part in (text[:at], text[at:line_end], text[line_end:])
        )
        request = CompletionRequest(
            prefix, suffix, "python", path=task.path, document=task.id, mode=Mode.LINE, max_tokens=32, drafting=False
        )
        found.append(Member(replace(request, invoked=True), name, line))
    return found


def _dots(root: Node) -> list[int]:
    """Offsets behind the dots of attributes."""
    stack, found = [root], []
    while stack:
        node = stack.pop()
        member = node.child_by_field_name("attribute") if node.type == "attribute" else None
        if member is not None and not node.has_error:
            found.append(member.start_byte)
        stack.extend(node.children)
    return sorted(found)


def names_at(member: Member) -> tuple[set[str], float]:
    """The names of jedi at the cursor, and the milliseconds that they took."""
    prefix = member.request.prefix
    started = perf_counter()
    script = jedi.Script(prefix + member.request.suffix, project=_PROJECT)
    found = script.complete(prefix.count("\n") + 1, len(prefix) - prefix.rfind("\n") - 1)
    return {name.name for name in found}, 1e3 * (perf_counter() - started)


def main() -> None:
    """Complete at every cursor with each bonus, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.members", description=__doc__)
    parser.add_argument("--records", type=int, default=25, help="Python records of each data set")
    parser.add_argument("--model", default="default")
    parser.add_argument("--data-dir", help="folder of the open evaluation data")
    arguments = parser.parse_args()
    loaded = load_model(arguments.model)
    model = BonusModel(loaded.model, loaded.tokenizer)
    engine = Engine(replace(loaded, model=model))
    cursors = members(arguments.records, arguments.data_dir)
    answers = [names_at(member) for member in cursors]
    rows = {
        bonus: [_right(engine, model, *pair, bonus) for pair in zip(cursors, answers, strict=True)] for bonus in BONUSES
    }
    _print(rows)
    print(json.dumps(_figures(cursors, answers, rows)))


def _right(
    engine: Engine, model: BonusModel, member: Member, answer: tuple[set[str], float], bonus: float
) -> tuple[bool, bool]:
    """Whether the name is right, and the line."""
    model.favour(heal(member.request.prefix).forced, sorted(answer[0]), bonus)
    *_, last = engine.complete(member.request, CancelToken())
    text = last.suggestions[0].text if last.suggestions else ""
    name = _NAME.match(text.encode()).group().decode()  # type: ignore[union-attr]  # as above
    return name == member.name, text.strip() == member.line.strip()


def _print(rows: dict[float, list[tuple[bool, bool]]]) -> None:
    table = Table("bonus", "cursors", "name right", "line right")
    for bonus, right in rows.items():
        table.add_row(
            str(bonus), str(len(right)), str(sum(name for name, _ in right)), str(sum(line for _, line in right))
        )
    Console().print(table)


def _figures(
    cursors: list[Member], answers: list[tuple[set[str], float]], rows: dict[float, list[tuple[bool, bool]]]
) -> dict[str, Any]:
    count = max(1, len(cursors))
    times = [time for _, time in answers]
    known = [names for names, _ in answers if names]
    return {
        "cursors": len(cursors),
        "jedi_knows": round(len(known) / count, 4),
        "jedi_has_the_name": round(
            sum(m.name in names for m, (names, _) in zip(cursors, answers, strict=True)) / max(1, len(known)), 4
        ),
        "jedi_ms": round(median(times), 1),
        "jedi_ms_p90": round(quantiles(times, n=10)[-1], 1),
        "name_match": {str(bonus): round(sum(name for name, _ in right) / count, 4) for bonus, right in rows.items()},
        "exact_match": {str(bonus): round(sum(line for _, line in right) / count, 4) for bonus, right in rows.items()},
    }


if __name__ == "__main__":
    main()
