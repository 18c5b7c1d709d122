"""A host process with the paced engine: `python paced_host.py --model NAME ...`."""

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parent)]

from completion.host.process.lifetime import parse_settings, serve  # noqa: E402
from tests.completion.host.paced_engine import PacedEngine  # noqa: E402 - after the path is set

if __name__ == "__main__":
    engine = PacedEngine(step_s=0.002)
    status = serve(parse_settings(sys.argv[1:]), engine.load, on_listening=lambda _: None)
    sys.stderr.flush()
    os._exit(status)
