"""`python -m completion.host`: the process that clients start; it serves the real engine."""

from __future__ import annotations

import gc
import os
import sys

gc.disable()  # collecting during the imports would take a tenth of the start-up time and free nothing

from completion.errors import DraftlineError  # noqa: E402
from completion.host.engine_loader import engine_loader  # noqa: E402
from completion.host.process.lifetime import parse_settings, serve  # noqa: E402
from completion.memory import use_one_heap  # noqa: E402


def main() -> int:
    """Serve until the host is idle or stopped. Return the exit status."""
    gc.freeze()
    gc.enable()
    use_one_heap()
    settings = parse_settings(sys.argv[1:])
    try:
        return serve(settings, engine_loader(settings), on_listening=lambda _: None)
    except DraftlineError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the client that started the host shows this line to the user
        return 1


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # a thread that still loads the model would delay the exit
