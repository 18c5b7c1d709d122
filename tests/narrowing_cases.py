"""What is left of a suggestion while the user types: the cases that the server and the clients agree on.

The bar in `then` is the cursor at the request, the one in `now` the cursor after the user typed. `text` was suggested
and replaces `replaced` characters after the cursor; `closers` are those of its item. With `grows`, more of it may come.
`left` is the text that is left to insert and how many characters it replaces, null if nothing is. `offer.test.ts` of
the VS Code client reads the file, too.
"""

import json
from pathlib import Path

from lsp_server.suggesting.closers import closers_while_typing

NARROWING_CASES = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def closers_sent(text, replaced=""):
    """Return the closers of an item as the server sends them, for a text of ASCII."""
    return [
        {"character": character, "from": start} | ({} if end is None else {"to": end})
        for character, start, end in closers_while_typing(text, replaced)
    ]
