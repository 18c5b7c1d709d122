"""Write drafting/data/common_tokens.npz: what often comes after frequent tokens of public source code.

`python scripts/write_common_tokens.py FOLDER…` counts the source files under the folders, equally many tokens of each
language. The file in the repository was made from the sources of Django 6.1.3, SQLAlchemy 2.0.58, ruff 0.17.6, uv
0.13.9, grpcio-tools 1.80.1, react-native 1000.0.0 and Python 3.11; the benchmarks' data has none of them.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))  # a checkout needs no installation

from completion.model.store.model_store import prepare  # noqa: E402
from completion.model.tokenizer import CodeTokenizer  # noqa: E402
from drafting.sources.token_recycling import (  # noqa: E402
    ALONE,
    COMMON_FILE,
    EMPTY,
    WIDTH,
)

ENDINGS = (("py",), ("rs",), ("h", "cc", "cpp"), ("java", "kt"), ("js", "ts"))
TOKENS = 400_000
"""Number of tokens that are counted of each language."""
CHARACTERS = 20_000
"""Number of characters that are counted of one file."""
FREQUENT = 16
"""Tokens and pairs of tokens that occur less often are left out; the pairs that are left cover 56 % of the text."""

Tokens = npt.NDArray[np.int64]


def token_stream(folders: list[Path], tokenizer: CodeTokenizer) -> Tokens:
    """Return the tokens of files drawn by chance, a gap of two EMPTY before each file.  # [tokens]."""
    draw, parts = random.Random(0), []
    for endings in ENDINGS:
        files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix[1:] in endings)
        draw.shuffle(files)
        counted = 0
        for path in files:
            tokens = tokenizer.encode(path.read_text(encoding="utf-8", errors="ignore")[:CHARACTERS])
            parts.append(np.array([EMPTY, EMPTY, *tokens], dtype=np.int64))
            counted += len(tokens)
            if counted > TOKENS:
                break
    return np.concatenate(parts)


def followers(keys: Tokens, after: Tokens) -> tuple[Tokens, npt.NDArray[Any]]:
    """Return the frequent keys, the most frequent last, and what comes after each, the most frequent first.

    Returns:
        Keys [keys] and candidates [keys, WIDTH].
    """
    found, counts = np.unique(keys, return_counts=True)
    frequent, counts = found[counts >= FREQUENT], counts[counts >= FREQUENT]
    pairs, times = np.unique(np.stack([keys, after]), axis=1, return_counts=True)
    order = np.lexsort((-times, pairs[0]))
    pairs, times = pairs[:, order], times[order]
    rows = np.full((len(frequent), WIDTH), EMPTY, dtype=np.int32)
    for row, start in enumerate(np.searchsorted(pairs[0], frequent)):
        end = start + WIDTH
        mine = (pairs[0, start:end] == frequent[row]) & (times[start:end] > 1)
        rows[row, : mine.sum()] = pairs[1, start:end][mine]
    order = np.argsort(counts, kind="stable")
    return frequent[order], rows[order]


def main() -> None:
    """Count, then write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    tokenizer = CodeTokenizer.from_folder(prepare("default").folder)
    stream = token_stream(parser.parse_args().folders, tokenizer)
    before, token, after = stream[:-2], stream[1:-1], stream[2:]
    keys = np.concatenate([np.full(len(token), ALONE) << 32 | token, before << 32 | token])
    known = np.concatenate([token >= 0, (before >= 0) & (token >= 0)]) & np.tile(after >= 0, 2)
    keys, candidates = followers(keys[known], np.tile(after, 2)[known])
    path = REPOSITORY / "drafting" / "data" / COMMON_FILE
    np.savez_compressed(
        path,
        vocabulary=tokenizer.digest,
        tokens=np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1).astype(np.int32),
        after=candidates,
    )
    print(f"{len(keys):,} rows, {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
