"""The process that benchmarks.engine starts to measure the load time and memory of an engine host."""

from __future__ import annotations

import argparse
import json
import time

SESSION_TOKENS = 2000
"""Length of the session, in tokens."""


def main() -> None:
    """Load the engine as the host does, fill a session of 2,000 tokens, and print seconds and megabytes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine.host", description=__doc__)
    parser.add_argument("--model", default="default")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    import numpy as np
    import psutil

    from completion.engine import Engine
    from completion.host.engine_loader import engine_loader
    from completion.host.server import HostSettings
    from completion.progress import silent

    started = time.perf_counter()
    loaded = engine_loader(HostSettings(model=arguments.model, threads=arguments.threads))(silent)
    load_s = time.perf_counter() - started
    loaded.settle()
    if not isinstance(loaded.engine, Engine):
        raise SystemExit(f"{arguments.model} is no local model.")
    model = loaded.engine.passes.model
    slots = np.arange(min(SESSION_TOKENS, model.shape.max_positions), dtype=np.int32)
    cache = model.new_cache(len(slots))
    model.prefill(slots % model.shape.vocabulary_size, slots, cache, [len(slots) - 1]).argmax()
    resident = psutil.Process().memory_info().rss / 1e6
    print(json.dumps({"load_s": load_s, "resident_mb": resident}))
    loaded.engine.close()


if __name__ == "__main__":
    main()
