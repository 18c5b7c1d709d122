"""Lays out blocks as the strips of the block kernels; reads those of a GGUF file, without loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from completion.model.int8.kernels.block_kinds import COLUMNS, PIECES, STEPS, STRIP, BlockKind

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Strips = list[tuple[int, Bytes]]
"""Kind and bytes of each strip of a matrix."""


class Blocks(NamedTuple):
    """Content of blocks, each array with all axes that the file has after the first."""

    values: Bytes  # [rows, columns]
    factors: npt.NDArray[np.float16]  # [rows, units, 1 or 2]: of the scales, of the minima
    scales: Bytes  # [rows, units, 8 times scales and minima of 32 columns]; empty for units of 32 columns


def laid_out(blocks: Blocks, kind: BlockKind) -> Bytes:
    """Return a whole number of strips of blocks as strips; see `block_kinds`.  # [strips, units, bytes of a unit]."""
    values, factors, scales = blocks
    strips, units, lines = len(factors) // STRIP, factors.shape[1], kind.unit // COLUMNS
    found = np.empty((strips, units, kind.unit_bytes), np.uint8)
    head, body = found[..., : kind.factors_bytes], found[..., kind.factors_bytes :].reshape(strips, units, lines, -1)
    into = head.view(np.float16).reshape(strips, units, -1, STRIP)
    into[...] = factors.reshape(strips, STRIP, units, -1).transpose(0, 2, 3, 1)
    if kind.scales_bytes:
        ordered = scales.reshape(strips, STRIP, units, lines, -1).transpose(0, 2, 3, 4, 1)
        body[..., : kind.scales_bytes] = ordered.reshape(strips, units, lines, -1)
    words = np.ascontiguousarray(values).view(np.uint32).reshape(strips, STRIP, units, lines, STEPS)
    rows = body[..., kind.scales_bytes :].view(np.uint32).reshape(strips, units, lines, kind.bits, STRIP)
    for row, content in enumerate(_packed(words.transpose(4, 0, 2, 3, 1), kind.bits)):
        rows[..., row, :] = content
    return found


def _packed(steps: Words, bits: int) -> list[Words]:
    """Lay out the bits of values as PIECES says, each step whole: that is quick.  # [8, ...] → bits times [...]."""
    rows: list[Words | None] = [None] * bits
    for step, pieces in zip(map(np.ascontiguousarray, steps), PIECES[bits], strict=True):
        for row, shift, width, place in pieces:
            ones = np.uint32(0x01010101 * ((1 << width) - 1))  # in each of four values
            piece = ((step >> np.uint32(place)) & ones) << np.uint32(shift)
            known = rows[row]
            rows[row] = piece if known is None else known | piece
    return [row for row in rows if row is not None]


def _halves(raw: Bytes) -> npt.NDArray[np.float16]:
    return np.ascontiguousarray(raw).view(np.float16)


def _read_q5_0(raw: Bytes) -> Blocks:
    """Read blocks: float16 factor, 32 high bits, 16 bytes with values n (low half) and n + 16."""
    blocks = raw.reshape(len(raw), -1, 22)
    top = np.unpackbits(blocks[..., 2:6], axis=-1, bitorder="little")
    low = np.concatenate([blocks[..., 6:] & 15, blocks[..., 6:] >> 4], axis=-1)
    return Blocks(low | (top << 4), _halves(blocks[..., :2]), raw[:, :0])


def _read_q8_0(raw: Bytes) -> Blocks:
    """Read blocks: float16 factor, 32 int8."""
    blocks = raw.reshape(len(raw), -1, 34)
    return Blocks(blocks[..., 2:], _halves(blocks[..., :2]), raw[:, :0])


def _read_q4_k(raw: Bytes) -> Blocks:
    """Read blocks: float16 factors of scales and minima, 12 bytes of 6-bit scales and minima, 4 times 64 values."""
    blocks = raw.reshape(len(raw), -1, 144)
    small = blocks[..., 4:16]
    first, second, third = small[..., :4], small[..., 4:8], small[..., 8:]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], axis=-1)
    minima = np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], axis=-1)
    pairs = blocks[..., 16:].reshape(*blocks.shape[:2], 4, 1, 32)
    values = np.concatenate([pairs & 15, pairs >> 4], axis=-2)
    return Blocks(values, _halves(blocks[..., :4]), np.stack([scales, minima], axis=-1))


def _read_q6_k(raw: Bytes) -> Blocks:
    """Read blocks: low halves and high pairs of bits of twice 128 values, 16 int8 scales, float16 factor."""
    blocks = raw.reshape(len(raw), -1, 210)
    low = blocks[..., :128].reshape(*blocks.shape[:2], 2, 1, 64)
    top = blocks[..., 128:192].reshape(*blocks.shape[:2], 2, 1, 32)
    lows = np.concatenate([low & 15, low >> 4], axis=-2).reshape(*blocks.shape[:2], 2, 4, 32)
    places = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    return Blocks(lows | ((top >> places & 3) << 4), _halves(blocks[..., 208:]), blocks[..., 192:208])


READERS = {"Q5_0": _read_q5_0, "Q8_0": _read_q8_0, "Q4_K": _read_q4_k, "Q6_K": _read_q6_k}
"""Functions that read rows of blocks as a file has them, by llama.cpp's name.  # [rows, bytes] each."""
