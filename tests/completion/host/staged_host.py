"""A host process that sends itself a signal at a stage, once. STAGED_HOST names a file with both: "loading KILL".

The stages in their order: started, locked, listening, loading, warm-up, step, closing.
"""

import os
import signal
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parent)]

ORDER = Path(os.environ["STAGED_HOST"])
STAGE, _, SIGNAL = ORDER.read_text().partition(" ") if ORDER.exists() else ("", "", "")


def reached(stage):
    if stage == STAGE and ORDER.exists():
        ORDER.unlink()
        os.kill(os.getpid(), signal.Signals[f"SIG{SIGNAL}"])


reached("started")

from completion.host.engine_loader import warm_up  # noqa: E402 - after the path is set
from completion.host.process.lifetime import parse_settings, serve  # noqa: E402
from tests.completion.host.paced_engine import PacedEngine  # noqa: E402


class StagedEngine(PacedEngine):
    def complete(self, request, cancel):
        if request.language == "long step":
            end = time.perf_counter() + 1.0
            while time.perf_counter() < end:
                pass
        for event in super().complete(request, cancel):
            yield event
            if request.prefix == "one":
                reached("step")

    def close(self):
        reached("closing")
        super().close()


def load(progress):
    progress("Loading.", 0.1)
    reached("loading")
    engine = StagedEngine(step_s=0.002)
    loaded = engine.load(progress)
    warm_up(engine)
    reached("warm-up")
    return loaded


def audit(event, _arguments):
    if event == "socket.bind":  # the first thing that a host does while it holds the lock
        reached("locked")


if __name__ == "__main__":
    sys.addaudithook(audit)
    arguments = [word for word in sys.argv[1:] if word != "serve"]
    status = serve(parse_settings(arguments), load, on_listening=lambda _: reached("listening"))
    sys.stderr.flush()
    os._exit(status)
