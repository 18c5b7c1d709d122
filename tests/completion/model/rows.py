"""Inputs of the models' tests (tokens, slots, parents) and their results as arrays."""

import numpy as np


def tokens(count, seed=0):
    """Return random token ids of the tiny models.  # [count]."""
    return np.random.default_rng(seed).integers(0, 384, count).astype(np.int32)


def slots(count, start=0):
    """Return consecutive slots.  # [count]."""
    return np.arange(start, start + count, dtype=np.int32)


def chain(count):
    """Return the parents of rows that form a chain.  # [count]."""
    return np.arange(-1, count - 1, dtype=np.int32)


def rows_of(logits, count):
    """Return logits as one array.  # [count, vocabulary_size]."""
    return np.stack([logits.row(index) for index in range(count)])
