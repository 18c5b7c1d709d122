"""Kinds of weight blocks that llama.cpp writes, and how the kernels lay them out.

A strip is 16 output channels. It is a sequence of units: of 32 columns where every block has a half-precision scale,
of 256 columns where blocks have integer scales that share half-precision factors. A unit is, for its 16 channels:

    factors: float16 [1 or 2, 16]: of the scales, of the minima; then for each 32 columns
    scales:  int8 [32 / block columns, 16], minima: uint8 [16]; only in units of 256 columns
    values:  uint8 [bits, 64]: the bits of eight steps, as PIECES says

A step is four neighbouring columns of the 16 channels: [16, 4].
"""

from __future__ import annotations

from typing import NamedTuple

STRIP = 16
"""Number of output channels in a strip."""
COLUMNS = 32
"""Number of columns that are multiplied together: eight steps of four."""
STEPS = COLUMNS // 4


class Piece(NamedTuple):
    """Bits of a step's values: `width` bits from bit `shift` on of a row are the values' bits from `place` on."""

    row: int
    shift: int
    width: int
    place: int


PIECES: dict[int, tuple[tuple[Piece, ...], ...]] = {
    4: tuple((Piece(step % 4, 4 * (step // 4), 4, 0),) for step in range(8)),
    5: (
        *((Piece(step, 0, 5, 0),) for step in range(4)),
        *((Piece(step, 5, 3, 0), Piece(4, 2 * step, 2, 3)) for step in range(4)),
    ),
    6: (
        *((Piece(step, 0, 6, 0),) for step in range(6)),
        *(tuple(Piece(3 * step + n, 6, 2, 2 * n) for n in range(3)) for step in range(2)),
    ),
    8: tuple((Piece(step, 0, 8, 0),) for step in range(8)),
}
"""Where the bits of each of eight steps are, by the number of bits of a value: the fewest operations to widen them."""


class BlockKind(NamedTuple):
    """Encoding of weights: scale · (value − offset), or scale · value − minimum. Values of 8 bits are signed.

    Attributes:
        name: llama.cpp's name.
        bits: Bits of a value.
        offset: Number that is subtracted from values.
        block: Number of columns that share a scale.
        unit: Number of columns of a unit.
        has_minimum: Whether blocks have a minimum.
    """

    name: str
    bits: int
    offset: int
    block: int = 32
    unit: int = 32
    has_minimum: bool = False

    @property
    def factors_bytes(self) -> int:
        """Size of a unit's factors."""
        return 2 * STRIP * (1 + self.has_minimum)

    @property
    def scales_bytes(self) -> int:
        """Size of the integer scales and minima of 32 columns."""
        return STRIP * (COLUMNS // self.block + self.has_minimum) if self.unit > COLUMNS else 0

    @property
    def columns_bytes(self) -> int:
        """Size of 32 columns, without the unit's factors."""
        return self.scales_bytes + STRIP * COLUMNS * self.bits // 8

    @property
    def unit_bytes(self) -> int:
        """Size of a unit."""
        return self.factors_bytes + self.unit // COLUMNS * self.columns_bytes


KINDS = (
    BlockKind("Q5_0", bits=5, offset=16),
    BlockKind("Q8_0", bits=8, offset=0),
    BlockKind("Q4_K", bits=4, offset=0, unit=256, has_minimum=True),
    BlockKind("Q6_K", bits=6, offset=32, block=16, unit=256),
)
"""All kinds; a kind's index is its number in a matrix's table of strips."""
KIND_NUMBERS = {kind.name: number for number, kind in enumerate(KINDS)}
"""Number of each kind by llama.cpp's name."""
