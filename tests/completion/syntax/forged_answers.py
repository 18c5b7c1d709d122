"""A function for the parser's child that answers with other bytes than those of a result; it imports little."""

import os
import sys


def forge(answer: bytes) -> bool:
    """Answer so, as a child does that a text has taken over, and end."""
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    os._exit(0)
