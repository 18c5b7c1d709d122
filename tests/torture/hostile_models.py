"""Model files with numbers that no model has: each is refused with a sentence, or loads and runs; nothing crashes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from completion.errors import DraftlineError
from completion.model.loading import load_model
from tests.tiny_gguf import write_gguf
from tests.tiny_models import write_tiny_model
from tests.torture.tally import Round
from tests.torture.world import ROOT

MODELS = 6
"""Models of a round: packing one takes a process of its own."""
_LOAD_S = 300.0
_NUMBERS = (
    "0",
    "-1",
    "1",
    "3",
    "7",
    "63",
    "1e999",
    "NaN",
    "0.5",
    "1e30",
    "18446744073709551616",
    "1099511627776",
    "-1099511627776",
    "null",
    '""',
    "[]",
)
_KEYS = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_theta",
    "sliding_window",
    "max_window_layers",
    "rope_scaling",
)
_DEEP = 100_000


def run(tally: Round, models: int = MODELS) -> None:
    """One round: a process loads some hostile models, one after the other."""
    with tempfile.TemporaryDirectory(prefix="dl-") as folder:
        command = [sys.executable, "-m", "tests.torture.hostile_models", folder, str(tally.seed), str(models)]
        environment = {**os.environ, "DRAFTLINE_CACHE_DIR": f"{folder}/cache"}
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_LOAD_S, check=False
            )
        except subprocess.TimeoutExpired:
            tally.found(f"{models} hostile models took more than {_LOAD_S:g} s")
            return
    lines = done.stdout.splitlines()
    tally.counts["hostile_models"] += len(lines)
    for line in lines:
        if line.startswith("RAISED"):
            tally.found(f"a hostile model: {line}")
    if done.returncode:
        tally.found(f"after {len(lines)} hostile models the process ended with {done.returncode}: {done.stderr[-200:]}")


def _mutated(folder: Path, chance: random.Random) -> Path:
    """Write a tiny model with something wrong; return its folder or file."""
    model = write_tiny_model(folder, chance.choice(("llama", "qwen2")), head_dim=32)
    config = model / "config.json"
    kind = chance.randrange(4)
    if kind == 0:
        return _gguf_with_wrong_bytes(model, chance)
    values = json.loads(config.read_text()) | {"use_sliding_window": True}
    for key in chance.sample(_KEYS, chance.randrange(1, 3)):
        values[key] = "@" + chance.choice(_NUMBERS)
    text = json.dumps(values)
    for number in _NUMBERS:
        text = text.replace(json.dumps("@" + number), number)
    config.write_text("[" * _DEEP + "]" * _DEEP if kind == 1 and chance.random() < 0.3 else text)
    if chance.random() < 0.1:
        (model / "tokenizer.json").write_text("[" * _DEEP)
    return model


def _gguf_with_wrong_bytes(model: Path, chance: random.Random) -> Path:
    path = write_gguf(model / "model.gguf", model, "llama")
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 2, 4))):
        at = chance.randrange(chance.choice((30, 700, 20_000)))
        data[at : at + 8] = chance.choice((b"\0" * 8, b"\xff" * 8, b"\1" + b"\0" * 7, b"\x09" + b"\0" * 7))
    path.write_bytes(data)
    return path


def _try(path: Path) -> str:
    try:
        loaded = load_model(str(path), backend="int8", threads=2)
        tokens = np.arange(8, dtype=np.int32)
        loaded.model.prefill(tokens, tokens, loaded.model.new_cache(16), [7]).argmax()
    except DraftlineError as error:
        return f"refused {type(error).__name__}"
    except Exception as error:  # noqa: BLE001 - any other is what is looked for
        return f"RAISED {type(error).__name__}: {str(error)[:100]}"
    return "ran"


if __name__ == "__main__":
    chosen = random.Random(int(sys.argv[2]))
    for number in range(int(sys.argv[3])):
        print(_try(_mutated(Path(sys.argv[1], str(number)), chosen)), flush=True)
