"""Accept a path of a scored draft tree: the longest one that plain decoding would have written anyway."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from drafting.draft_tree import ROOT, DraftTree

MODEL = "model"
"""Who wrote a token that no drafter guessed."""

ANCHOR_ROW = 0
"""Scored row of the last token of the context, whose keys and values are not in the cache yet."""


@dataclass(frozen=True, slots=True)
class AcceptedPath:
    """What one step adds to the text.

    Attributes:
        rows: Scored rows to commit to the cache, the anchor's first: a root and a path below it.
        tokens: Tokens emitted: the accepted guesses, then the one that the model chose itself.
        drafters: Who wrote each of `tokens`: a drafter's name, or MODEL.
    """

    rows: tuple[int, ...]
    tokens: tuple[int, ...]
    drafters: tuple[str, ...]

    @property
    def accepted(self) -> int:
        """Guessed tokens that were accepted."""
        return len(self.rows) - 1


def accept_path(tree: DraftTree, choose: Callable[[int], int], ends: Container[int] = ()) -> AcceptedPath:
    """Walk down from the anchor, following the model's own choices for as long as the tree holds them.

    Greedy and sampled decoding are the same walk. It is lossless because `choose` never sees the tree: a row's token
    is the one that plain decoding draws after the same text (with noise keyed by seed and position when sampling).
    Source: "Accelerating Large Language Model Decoding with Speculative Sampling", for drafts without a distribution.

    Args:
        tree: The guesses. Scored row 0 is the anchor, row i + 1 is node i.
        choose: The token after a scored row, all constraints applied: argmax, or a seeded draw. Asked once for each
            visited row, from the anchor down, so that costly constraints are checked on accepted text only.
        ends: Tokens after which nothing more is asked: the walk stops with them.

    Returns:
        The rows to commit and the tokens to emit. The last token is never committed: it is the next step's anchor.
    """
    row, node = ANCHOR_ROW, ROOT
    rows, tokens, drafters = [row], [choose(row)], [MODEL]
    while tokens[-1] not in ends and (child := tree.child(node, tokens[-1])) is not None:
        node, row = child, child + 1
        drafters[-1] = tree.names[int(tree.drafters[node])]
        rows.append(row)
        tokens.append(choose(row))
        drafters.append(MODEL)
    return AcceptedPath(tuple(rows), tuple(tokens), tuple(drafters))
