"""What kernels need to know of a processor: what its registers hold, and how it multiplies bytes.

Every processor computes the same integers, so models give the same logits on all, bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from llvmlite import ir

from completion.model.int8.kernels.vector import Values


class Instructions(ABC):
    """A generation of processors.

    Attributes:
        weight_offset: Number that is added to the int8 weights of panels: 128 where products take unsigned ones, or 0.
        run: Number of neighbouring columns of a channel that are adjacent in a panel: those that a product adds.
        tile_rows: Maximum number of rows that are multiplied by a panel together.
        tile_columns: Number of columns of a round of a tile's loop.
        tile_queries: Maximum number of queries of attention together.
        attention_sums: Number of vectors of sixteen sums that the registers hold beside the operands of attention.
        strip_channels: Number of channels of a strip together, whose 32 columns fit the registers.
        strip_rows: Number of rows of a strip's product together.
        shift_bits: Size of the smallest numbers that it shifts.
        byte_offset: Number that is added to Q8_0's int8 values: as `weight_offset`.
        prefetches: Where weights in blocks are prefetched: see `vector.prefetch`.
        has_amx: Whether many rows are multiplied by tile registers; see `amx`.
    """

    weight_offset: int
    run: int
    tile_rows: int
    tile_columns: int
    tile_queries: int
    attention_sums: int
    strip_channels: int
    strip_rows: int
    shift_bits: int
    byte_offset: int
    prefetches: tuple[tuple[int, int], ...]
    has_amx: bool = False

    @abstractmethod
    def tile_channels(self, rows: int) -> int:
        """Return how many channels of a panel are multiplied together: a divisor of 64 in sixteens."""

    @abstractmethod
    def empty_sums(self, rows: int) -> list[ir.Constant]:
        """Return zeros for the sums of a tile, in the form of `add_columns`."""

    @abstractmethod
    def add_columns(self, b: ir.IRBuilder, sums: Values, weights: ir.Value, rows: Values) -> Values:
        """Add the products of `tile_columns` columns to sums.

        Args:
            b: Builder.
            sums: Sums in any form.
            weights: Address of the columns' first weight; runs of a panel are 64 · `run` bytes apart.
            rows: Addresses of the columns' inputs.
        """

    @abstractmethod
    def tile_sums(self, b: ir.IRBuilder, sums: Values, rows: int) -> list[Values]:
        """Return the sums of each row by channel.  # [rows][channels / 16] of int32 [16]."""

    @abstractmethod
    def block_sums(
        self, b: ir.IRBuilder, values: Values, lines: Values, first: int, starts: Values, bits: int
    ) -> Values:
        """Return Σ x · value of a block for one row or `strip_rows` rows, plus a start each.  # int32 [strip_channels].

        Args:
            b: Builder.
            values: Values of the block's steps; for several rows in the form of `for_rows`.
            lines: Addresses of the rows' lines of 32 columns; see `block_product`.
            first: The block's first step in the line.
            starts: Numbers to start from.
            bits: Bits of a value; values of 8 are signed, after the subtraction of `byte_offset`.
        """

    def for_rows(self, _b: ir.IRBuilder, steps: Values) -> Values:
        """Arrange the values of eight steps, once, for `block_sums` of `strip_rows` rows."""
        return steps

    @abstractmethod
    def pause(self, b: ir.IRBuilder) -> None:
        """Wait some nanoseconds."""
