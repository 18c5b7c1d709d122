"""Instructions of the processor that the kernels run on."""

from __future__ import annotations

from completion.model.int8.kernels.instructions.arm import Arm, ArmWithMatrices
from completion.model.int8.kernels.instructions.description import Instructions
from completion.model.int8.kernels.instructions.x86 import X86
from completion.model.int8.kernels.processor import FEATURES, ON_ARM


def _of_this_processor() -> Instructions:
    if ON_ARM:
        return ArmWithMatrices() if "i8mm" in FEATURES else Arm()
    return X86(FEATURES)


INSTRUCTIONS = _of_this_processor()
"""Description of this processor, from which all kernels are built."""
