"""Compares products and logits of emulated Arm processors with this machine's, bit for bit."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.completion.model.conftest import VARIANTS, save_variant
from tests.completion.model.int8.test_block_product import raw_blocks
from tests.completion.model.int8.test_quantized import GGUF_FAMILIES, in_blocks

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAM = CHECKOUT / ".cache" / "arm" / "python"
PROCESSORS = {"cortex-a76": "Arm", "max": "ArmWithMatrices"}
"""The emulator's names of processors, and the description that each must get."""
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


def results(command: list[str], inputs: Path, target: Path, **variables: str) -> dict[str, np.ndarray]:
    """Compute the results with a Python program."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    subprocess.run([*command, "-m", "tests.arm.results", str(inputs), str(target)], env=environment, check=True)
    with np.load(target) as found:
        return dict(found)


def differences(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> list[str]:
    """Return the names of results that differ in a bit."""
    if found.keys() != expected.keys():
        raise SystemExit(f"Results are missing: {sorted(found.keys() ^ expected.keys())}")
    return [
        name for name, value in expected.items() if name != "processor" and value.tobytes() != found[name].tobytes()
    ]


def main() -> int:
    """Return 0 if no result differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="append", choices=PROCESSORS, help="emulated processor (default: all)")
    processors, wrong = parser.parse_args().cpu or list(PROCESSORS), []
    with tempfile.TemporaryDirectory() as temporary:
        inputs = Path(temporary)
        write_inputs(inputs)
        expected = results([sys.executable], inputs, inputs / "here.npz")
        models = [value for name, value in expected.items() if name.startswith("model ")]
        for cpu in processors:
            variables = {"QEMU_CPU": cpu, "NUMBA_CACHE_DIR": str(PROGRAM.parent / f"numba-{cpu}")}
            found = results([str(PROGRAM)], inputs, inputs / f"{cpu}.npz", **variables)
            if found["processor"] != PROCESSORS[cpu]:
                raise SystemExit(f"The kernels took {cpu} for {found['processor']}, not for {PROCESSORS[cpu]}.")
            differing = differences(found, expected)
            print(f"{cpu} ({found['processor']}) against {expected['processor']}:")
            print(f"  products {len(expected) - 1 - len(models)}, of 1 to 17 rows with int8 and {', '.join(KINDS)}")
            print(f"  models {len(models)}, {sum(map(np.size, models))} logits")
            print(f"  differences {len(differing)}", *differing[:20], sep="\n    ")
            wrong += differing
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
