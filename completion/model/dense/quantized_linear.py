"""Linear layers with weights in 8 and 4 bits, by torch's own products of integers.

torch alone is enough. torchao's int8 layers widen a whole matrix before each product unless they are compiled, and its
4-bit layers, which call the same product as these, can only be made on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from completion.errors import UnsupportedModelError

GROUP = 32
"""Columns of a 4-bit matrix that share a scale and a zero, as in the blocks of a GGUF file."""
_MIN_ROWS = 32
"""Rows to which a product of int8 matrices is padded: a GPU has none with less than 17."""
_ROW_MULTIPLE = 8
"""Number that divides the rows of an int8 matrix: a GPU has no product of others, such as a vocabulary of 49,155."""
_PIECE_ROWS = 4096
"""Rows of a matrix that are rounded at once, so that a float32 copy of a whole matrix is never needed."""


@dataclass(frozen=True, slots=True)
class Int8Linear:
    """Linear layer whose weights and inputs are rounded to 8 bits, with a scale a row.

    Sums are exact integers, so no row of the result depends on the other rows.

    Attributes:
        weight: Rounded weights, then rows of zeros up to a multiple of `_ROW_MULTIPLE`.  # int8 [out or more, in]
        scales: Scale of each row of the weights.  # float32 [out]
        bias: Bias.  # [out], None if the layer has none
        dtype: Type of results.
    """

    weight: torch.Tensor
    scales: torch.Tensor
    bias: torch.Tensor | None
    dtype: torch.dtype

    @classmethod
    def rounded(
        cls, weights: Sequence[torch.Tensor], bias: torch.Tensor | None, dtype: torch.dtype, device: str
    ) -> Int8Linear:
        """Round matrices, which become one.  # [part of out, in] each."""
        pieces = [rounded_rows(piece) for piece in _pieces(weights, device)]
        scales, values = torch.cat([scale[:, 0] for _, scale in pieces]), [values for values, _ in pieces]
        filling = values[0].new_zeros((-len(scales) % _ROW_MULTIPLE, values[0].shape[1]))
        return cls(torch.cat([*values, filling]), scales, bias, dtype)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return y = x Wᵀ + b.  x: # [rows, in] → # [rows, out]."""
        values, scale = rounded_rows(x.float())
        padded = torch.nn.functional.pad(values, (0, 0, 0, max(0, _MIN_ROWS - len(values))))
        sums = torch._int_mm(padded, self.weight.t())  # noqa: SLF001  (torch's only product of int8)
        y = (sums[: len(values), : len(self.scales)].float() * (scale * self.scales)).to(self.dtype)
        return y if self.bias is None else y + self.bias

    def rows(self, indices: torch.Tensor) -> torch.Tensor:
        """Return rows of the matrix.  # [...] → # [..., in]."""
        return (self.weight[indices].float() * self.scales[indices][..., None]).to(self.dtype)


@dataclass(frozen=True, slots=True)
class Int4Linear:
    """Linear layer with weights in groups of 4-bit values: w = (value − 8) · scale + zero.

    Attributes:
        packed: Values in the order that the device's product wants.
        scales: Scale and zero of each group.  # [in / GROUP, out, 2]
        bias: Bias.  # [out], None if the layer has none
    """

    packed: torch.Tensor
    scales: torch.Tensor
    bias: torch.Tensor | None

    @classmethod
    def rounded(
        cls, weights: Sequence[torch.Tensor], bias: torch.Tensor | None, dtype: torch.dtype, device: str
    ) -> Int4Linear:
        """Round matrices, which become one.  # [part of out, in] each.

        Raises:
            UnsupportedModelError: The device's product does not exist for this shape.
        """
        out, width = sum(len(weight) for weight in weights), weights[0].shape[1]
        if out % 16 or width % GROUP:
            raise UnsupportedModelError(f"A layer of {out} x {width} has no product of 4-bit weights.")
        pieces = [_rounded_in_groups(piece, dtype) for piece in _pieces(weights, device)]
        values = torch.cat([found for found, _ in pieces])
        scales = torch.cat([found for _, found in pieces], dim=1)
        if values.device.type == "cuda":
            pairs = values[:, ::2] << 4 | values[:, 1::2]
            tiles = next(tiles for tiles in (8, 4, 2) if width % (16 * tiles) == 0)
            return cls(torch.ops.aten._convert_weight_to_int4pack(pairs, tiles), scales, bias)  # noqa: SLF001
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(values.int(), 8)  # noqa: SLF001
        return cls(packed, scales, bias)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return y = x Wᵀ + b.  x: # [rows, in] → # [rows, out]."""
        operators = torch.ops.aten
        on_gpu = self.packed.device.type == "cuda"
        product = operators._weight_int4pack_mm if on_gpu else operators._weight_int4pack_mm_for_cpu  # noqa: SLF001
        y = product(x.contiguous(), self.packed, GROUP, self.scales)
        return y if self.bias is None else y + self.bias


def rounded_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return int8 values and the scale of each row.  # float32 [..., width] → # [..., width], [..., 1]."""
    scales = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / 127
    return torch.round(x / scales).to(torch.int8), scales


def _pieces(weights: Sequence[torch.Tensor], device: str) -> Iterator[torch.Tensor]:
    for weight in weights:
        for piece in weight.split(_PIECE_ROWS):
            yield piece.to(device).float()


def _rounded_in_groups(weight: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return values from 0 to 15 with the scales and zeros of their groups.

    # [out, in] → # uint8 [out, in], [in / GROUP, out, 2]
    """
    groups = weight.unflatten(1, (-1, GROUP))
    low, high = groups.amin(dim=2, keepdim=True), groups.amax(dim=2, keepdim=True)
    scale = ((high - low).clamp(min=1e-12) / 15).to(dtype)
    zero = (low + 8 * scale.float()).to(dtype)
    values = torch.round((groups - zero.float()) / scale.float()) + 8
    factors = torch.cat((scale, zero), dim=2).transpose(0, 1).contiguous()
    return values.clamp(0, 15).to(torch.uint8).flatten(1), factors
