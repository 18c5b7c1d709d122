"""Compiles kernels for Arm on this machine into numba's cache: `python -m tests.arm.compiling INPUTS RESULTS`.

numba would compile for half an hour under emulation. So it is told that this machine is an Arm one, computes the
results with every long compilation replaced by one that calls nothing, and leaves its object code to the emulated run.
"""

from __future__ import annotations

import platform

from llvmlite import binding

TRIPLE = "aarch64-unknown-linux-gnu"


def pretend_to_be_arm() -> None:
    """Let numba and the kernels' description take this machine for Arm; NUMBA_CPU_FEATURES says what it can."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.get_process_triple = binding.get_default_triple = lambda: TRIPLE
    platform.machine = lambda: "aarch64"


class Compiler:
    """A stand-in for a compiled function: compiles for the types that it is called with."""

    def __init__(self, function) -> None:
        self._function = function

    def __call__(self, *arguments) -> None:
        from numba import typeof

        self._function.compile(tuple(typeof(argument) for argument in arguments))


def main() -> None:
    """Compile what `results` needs."""
    pretend_to_be_arm()
    from completion.model.int8 import cache, quantized
    from tests.arm import results

    results.multiply = Compiler(results.multiply)
    quantized.run_layers = Compiler(quantized.run_layers.compiled)
    for name in ("move_slots", "compress_slots", "expand_slots"):
        setattr(cache, name, Compiler(getattr(cache, name).compiled))
    results.main()


if __name__ == "__main__":
    main()
