"""Compares products and logits of emulated Arm processors with this machine's, bit for bit."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from transformers.utils.logging import disable_progress_bar

from tests.completion.model.conftest import VARIANTS, save_variant
from tests.completion.model.int8.test_block_product import raw_blocks
from tests.completion.model.int8.test_quantized import GGUF_FAMILIES, in_blocks

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAM = CHECKOUT / ".cache" / "arm" / "python"
PROCESSORS = {"cortex-a76": ("Arm", "+neon,+dotprod"), "max": ("ArmWithMatrices", "+neon,+dotprod,+i8mm")}
"""The emulator's names of processors, the description that each must get, and LLVM's names of its features."""
_ASK = "from completion.model.int8.kernels.instructions import INSTRUCTIONS; print(type(INSTRUCTIONS).__name__)"
KINDS = ("Q5_0", "Q8_0", "Q4_K", "Q6_K")


def write_inputs(folder: Path) -> None:
    """Write matrices with rows to multiply, and tiny models of every family in every form."""
    rng, arrays = np.random.default_rng(0), {}
    for width in (64, 192, 448):
        arrays[f"int8-{width}.x"] = rng.normal(size=(17, width)).astype(np.float32)
        for channels in (64, 128):
            arrays[f"int8-{width} {channels}"] = rng.normal(size=(channels, width)).astype(np.float32)
    arrays["int8-largest.x"] = np.ones((17, 448), np.float32)
    arrays["int8-largest 64"] = np.resize(np.array([1, -1], np.float32), (64, 1)) * np.ones((64, 448), np.float32)
    arrays["blocks.x"], arrays["blocks-largest.x"] = (
        rng.normal(size=(17, 512)).astype(np.float32),
        np.full((17, 512), -1, np.float32),
    )
    for kind in KINDS:
        panel = np.concatenate([raw_blocks(kind, seed) for seed in range(4)])
        arrays[f"blocks {kind}"] = arrays[f"blocks-largest {kind}"] = panel
    np.savez(folder / "products.npz", **arrays)
    (folder / "models").mkdir()
    for name in VARIANTS:
        written, _ = save_variant(name, folder / "models" / f"{name}.int8")
        if name.partition("-")[0] in GGUF_FAMILIES:
            in_blocks(written, folder / "models" / f"{name}.q4")


def run(program: str | Path, *arguments: str | Path, **variables: str) -> str:
    """Run a Python program with this checkout and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def emulated_results(inputs: Path, cpu: str) -> dict[str, np.ndarray]:
    """Compute the results on an emulated processor.

    Raises:
        SystemExit: The kernels take it for another one.
    """
    description, features = PROCESSORS[cpu]
    found = run(PROGRAM, "-c", _ASK, QEMU_CPU=cpu).strip()
    if found != description:
        raise SystemExit(f"The kernels took {cpu} for {found}, not for {description}.")
    cache = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": features,
        "NUMBA_CACHE_DIR": str(inputs / f"numba-{cpu}"),
    }
    target = inputs / f"{cpu}.npz"
    run(sys.executable, "-m", "tests.arm.compiling", inputs, target, **cache)
    run(PROGRAM, "-m", "tests.arm.results", inputs, target, QEMU_CPU=cpu, **cache)
    return dict(np.load(target))


def differences(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> list[str]:
    """Return the names of results that differ in a bit."""
    if found.keys() != expected.keys():
        raise SystemExit(f"Results are missing: {sorted(found.keys() ^ expected.keys())}")
    return [
        name for name, value in expected.items() if name != "processor" and value.tobytes() != found[name].tobytes()
    ]


def main() -> int:
    """Return 0 if no result differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.arm", description=__doc__)
    parser.add_argument("--cpu", action="append", choices=PROCESSORS, help="emulated processor (default: all)")
    processors, wrong = parser.parse_args().cpu or list(PROCESSORS), []
    disable_progress_bar()
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor() as pool:
        inputs = Path(temporary)
        write_inputs(inputs)
        run(sys.executable, "-m", "tests.arm.results", inputs, inputs / "here.npz")
        expected = dict(np.load(inputs / "here.npz"))
        models = [value for name, value in expected.items() if name.startswith("model ")]
        for cpu, found in zip(processors, pool.map(partial(emulated_results, inputs), processors), strict=True):
            differing = differences(found, expected)
            print(f"{cpu} ({found['processor']}) against {expected['processor']}:")
            print(f"  products {len(expected) - 1 - len(models)}, of 1 to 17 rows with int8 and {', '.join(KINDS)}")
            print(f"  models {len(models)}, {sum(map(np.size, models))} logits")
            print(f"  differences {len(differing)}", *differing[:20], sep="\n    ", flush=True)
            wrong += differing
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
