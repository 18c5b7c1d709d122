"""Faults of a single token: a token of a valid file is deleted, doubled, swapped, replaced, or inserted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from benchmarks.grammar.grammars import GRAMMARS
from benchmarks.grammar.sources import SourceFile
from completion.grammar.constraint import GrammarConstraint
from completion.grammar.joint import Fit, Joint
from completion.grammar.python_check import error_line
from completion.request import GrammarMode
from completion.syntax.trees import parse

KINDS = ("delete", "double", "swap", "replace", "insert")
CHECKS = ("acceptor", "suffix", "joined")
"""What can catch a fault: the acceptor at a token, the text after the cursor, or a parse of both together."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A file with one wrong token.

    Attributes:
        line: Text from the fault to the end of its line, newline included.
    """

    kind: str
    language: str
    prefix: str
    line: str
    suffix: str


def make_faults(file: SourceFile, count: int, rng: random.Random) -> Iterator[Fault]:
    """Yield at most `count` faults that make a valid file invalid."""
    tokens = list(_leaves(_root(file.text, file.language)))
    for _ in range(count if len(tokens) > 8 else 0):
        kind = rng.choice(KINDS)
        start, old_end, text = _change(kind, tokens, file.text, rng)
        broken = file.text[:start] + text + file.text[old_end:]
        invalid = _root(broken, file.language).has_error
        if not invalid and file.language == "python":
            invalid = error_line(file.text) is None and error_line(broken) is not None
        if invalid:
            line_end = broken.find(b"\n", start + len(text)) + 1 or len(broken)
            parts = (broken[:start], broken[start:line_end], broken[line_end:])
            yield Fault(kind, file.language, *(part.decode("utf-8", "replace") for part in parts))


def _root(text: bytes, language: str) -> Node:
    tree = parse(text, language)
    assert tree is not None, language
    return tree.root_node


def _leaves(root: Node) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges of the tokens of code, without comments and strings."""
    stack = [root]
    while stack:
        node = stack.pop()
        if "comment" in node.type or "string" in node.type:
            continue
        if node.child_count == 0 and node.end_byte > node.start_byte:
            yield node.start_byte, node.end_byte
        stack.extend(reversed(node.children))


def _change(kind: str, tokens: list[tuple[int, int]], text: bytes, rng: random.Random) -> tuple[int, int, bytes]:
    """Return the start and end of the replaced bytes, and their replacement."""
    index = rng.randrange(len(tokens) - 1)
    start, end = tokens[index]
    token = text[start:end]
    other = text[slice(*rng.choice(tokens))]
    if kind == "delete":
        return start, end, b""
    if kind == "double":
        return start, end, token + b" " + token
    if kind == "replace":
        return start, end, other
    if kind == "insert":
        return start, start, other + b" "
    next_start, next_end = tokens[index + 1]
    return start, next_end, text[next_start:next_end] + text[end:next_start] + token


def catch(fault: Fault, rng: random.Random) -> str:
    """Return which of CHECKS caught the fault by the end of its line, or "" for none."""
    opened = GrammarConstraint(GRAMMARS, fault.language, fault.prefix, fault.suffix, GrammarMode.STRICT)
    middle = fault.line.encode()
    if opened.root is None:
        return _joined(opened, middle)
    snapshot, offset = opened.root, 0
    while offset < len(middle):
        piece = middle[offset : offset + rng.randint(1, 8)]
        after = opened.advance(snapshot, piece)
        if after is None:
            return "acceptor"
        snapshot, offset = after, offset + len(piece)
    grammar = GRAMMARS.load(fault.language)
    assert grammar is not None, fault.language
    if Joint(grammar.acceptor, fault.suffix.encode()).fit(snapshot) is not Fit.YES:
        return "suffix"
    return _joined(opened, middle)


def _joined(opened: GrammarConstraint, middle: bytes) -> str:
    return "joined" if opened.longest_passing_cut(middle) < len(middle) else ""
