"""What is left of a suggestion while the user types: the cases that the server and the clients agree on.

The bar in `then` is the cursor at the request, the one in `now` the cursor after the user typed. `text` was suggested
and replaces `replaced` characters after the cursor; with `grows`, more of it may come. `left` is the text that is left
to insert and how many characters it replaces, null if nothing is. `offer.test.ts` of the VS Code client reads the file,
too.
"""

import json
from pathlib import Path

NARROWING_CASES = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
