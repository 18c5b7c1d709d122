"""`python -P -m tests.lsp_server.moved_clock_server --stdio`: the language server with a clock that a test moves.

The clock is ahead by the number of seconds in the file that DRAFTLINE_TEST_CLOCK names.
"""

import os
import sys
import time
from pathlib import Path

_ahead = Path(os.environ["DRAFTLINE_TEST_CLOCK"])
_monotonic = time.monotonic
time.monotonic = lambda: _monotonic() + (float(_ahead.read_text() or 0) if _ahead.exists() else 0.0)

if __name__ == "__main__":
    from lsp_server.__main__ import main

    sys.exit(main())
