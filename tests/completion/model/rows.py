"""What the tests of models compute: tokens, where they go, and what comes out."""

import numpy as np


def tokens(count, seed=0):
    """Token ids of the tiny models, drawn at random.  # [count]."""
    return np.random.default_rng(seed).integers(0, 384, count).astype(np.int32)


def slots(count, start=0):
    """Neighbouring slots.  # [count]."""
    return np.arange(start, start + count, dtype=np.int32)


def chain(count):
    """Parents of rows that follow each other.  # [count]."""
    return np.arange(-1, count - 1, dtype=np.int32)


def rows_of(logits, count):
    """Logits as one array.  # [count, vocabulary_size]."""
    return np.stack([logits.row(index) for index in range(count)])
