"""Says where tensors are: in which part of this process's memory, or how much of a GPU's they take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

import torch

from completion.memory import Held


def held_by(tensors: Iterable[torch.Tensor]) -> Held:
    """Return where contiguous tensors are; those that share their memory count once."""
    found = {(tensor.device.type, tensor.data_ptr()): tensor.nbytes for tensor in tensors}
    return Held(
        tuple((address, size) for (device, address), size in found.items() if device == "cpu"),
        gpu_bytes=sum(size for (device, _), size in found.items() if device != "cpu"),
    )


def tensors_in(part: object) -> Iterator[torch.Tensor]:
    """Yield the tensors in dataclasses and tuples of them."""
    if isinstance(part, torch.Tensor):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from tensors_in(each)
    elif is_dataclass(part):
        for field in fields(part):
            yield from tensors_in(getattr(part, field.name))
