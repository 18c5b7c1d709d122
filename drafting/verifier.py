"""Verification of a scored draft tree: accepts the longest path that plain decoding would have written."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from drafting.draft_tree import ROOT, DraftTree

MODEL = "model"
"""Name of the model among the drafters: it wrote the tokens that no drafter guessed."""

ANCHOR_ROW = 0
"""Scored row of the context's last token, whose keys and values are not in the cache yet."""


@dataclass(frozen=True, slots=True)
class AcceptedPath:
    """What one step adds to the text.

    Attributes:
        rows: Scored rows to commit to the cache: the anchor's, then those of the accepted nodes.
        tokens: Emitted tokens: the accepted guesses, then the token that the model chose itself.
        drafters: Who wrote each of `tokens`: a drafter's name, or MODEL.
    """

    rows: tuple[int, ...]
    tokens: tuple[int, ...]
    drafters: tuple[str, ...]


def accept_path(tree: DraftTree, choose: Callable[[int], int], ends: Container[int] = ()) -> AcceptedPath:
    """Walk down from the anchor, following the model's own choices while the tree contains them.

    Greedy and sampled decoding are the same walk. It is lossless because `choose` never sees the tree: a row's token
    is the one that plain decoding draws after the same text (with noise keyed by seed and position when sampling).
    Source: "Accelerating Large Language Model Decoding with Speculative Sampling", for drafts without a distribution.

    Args:
        tree: The guesses. Scored row 0 is the anchor, row i + 1 is node i.
        choose: Returns the token after a scored row, with all constraints applied: argmax, or a seeded draw. Called
            once for each visited row, from the anchor down, so that costly constraints only check accepted text.
        ends: Tokens that end the text: the walk stops after one of them.

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
