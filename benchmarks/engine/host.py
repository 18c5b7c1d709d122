"""The process that benchmarks.engine starts to measure the load time and memory of an engine host."""

from __future__ import annotations

import argparse
import json
import time


def main() -> None:
    """Load the model as the host does, fill a session of 2,000 tokens, and print seconds and megabytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    import numpy as np
    import psutil

    import completion.host.engine_loader  # noqa: F401  (the imports of the host count as its memory)
    from completion.engine import Engine, product_settings
    from completion.model.loading import load_model

    started = time.perf_counter()
    loaded = load_model("default", threads=arguments.threads)
    cache, tokens = loaded.model.new_cache(2048), np.arange(2000, dtype=np.int32)
    loaded.model.prefill(tokens[:1], tokens[:1], cache, [0]).argmax()
    load_s = time.perf_counter() - started
    engine = Engine(loaded, product_settings())  # the drafters count as memory of the host, too
    loaded.model.prefill(tokens, tokens, cache, [1999]).argmax()
    resident = psutil.Process().memory_info().rss / 2**20
    print(json.dumps({"load_s": load_s, "resident_mb": resident}))
    del engine


if __name__ == "__main__":
    main()
