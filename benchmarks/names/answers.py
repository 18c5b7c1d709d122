"""What the engine answers at a place: as it is, and with what a language server knows there."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.names.language_server import Known
from benchmarks.names.places import NAME, Place
from benchmarks.quality.rows import ROWS
from benchmarks.quality.tasks import Task
from completion.cancellation import CancelToken
from completion.decoding.constraints import KnownNames, NameState, known_names
from completion.engine import Engine
from completion.request import Closing, CompletionRequest, WorkspaceFile, WorkspaceUpdate
from completion.workspace.context import WorkspaceContext

PLAIN = "plain"
"""Row of the product without names."""
SIGNATURE = "signature"
"""Row with the signature of the called function in a comment above the line."""
LISTED = "listed"
"""Row with the known names in such a comment."""
COSTS = {"cost 2": 2.0, "cost 4": 4.0, "cost 8": 8.0, "pruned": math.inf}
"""Rows with a cost of tokens that lead to no known name, in nats."""

_MAX_TOKENS = 48
_LISTED_NAMES = 60
_SIGNATURE_CHARACTERS = 300
_CALLEE = re.compile(r"([\w.]*)\($")


@dataclass(slots=True)
class Answering:
    """An engine with the files of the package that was last asked about.

    Attributes:
        context_tokens: Maximum length of the snippets of a prompt.
    """

    engine: Engine
    context_tokens: int
    package: str = ""
    files: WorkspaceContext | None = None

    def open(self, package: str, texts: dict[str, str]) -> None:
        """Take the files of another package."""
        self.package, self.files = package, WorkspaceContext()
        self.files.update(WorkspaceUpdate("", tuple(WorkspaceFile(path, text) for path, text in texts.items())))

    def answers(self, place: Place, known: Known, rows: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        """Return the answer of each row that applies: its text, and the time that the names took.

        A cost changes nothing where the answer without it begins with a known name: such a text loses nothing, and each
        other one at most.
        """
        request, found = self._request(place), dict[str, dict[str, Any]]()
        found[PLAIN] = self._answer(request, place)
        offered = known_names(replace(request, names=known.names), "")
        name = f"{_first_name(found[PLAIN]['text'])} ".encode()
        is_known = offered is None or not offered.advance(NameState(0), name)[1]
        for row in rows:
            if row in COSTS and not is_known:
                KnownNames.unknown_cost = COSTS[row]
                found[row] = self._answer(replace(request, names=known.names), place)
            elif row == SIGNATURE and known.signature:
                callee = _CALLEE.search(place.prefix)
                text = (callee[1] if callee else "") + known.signature[:_SIGNATURE_CHARACTERS]
                found[row] = self._answer(_with_comment(request, text), place)
            elif row == LISTED and known.names:
                names = [name for name in known.names if not name.startswith("__")][:_LISTED_NAMES]
                found[row] = self._answer(_with_comment(request, ", ".join(names)), place)
        self.engine.forget(Closing(documents=(place.id,)))
        return found

    def _request(self, place: Place) -> CompletionRequest:
        assert self.files is not None
        path = f"{place.package}/{place.path}"
        own = self.files.files.pop(path, None)
        file = (WorkspaceFile("", ""),)
        task = Task(place.id, "names", place.language, path, place.prefix, place.suffix, place.reference, files=file)
        request = ROWS["whole"].request(task, self.files, self.context_tokens)
        if own is not None:
            self.files.files[path] = own
        return replace(request, document=place.id, max_tokens=_MAX_TOKENS, max_lines=1)

    def _answer(self, request: CompletionRequest, place: Place) -> dict[str, Any]:
        *_, last = self.engine.complete(request, CancelToken())
        first = last.suggestions[0] if last.suggestions else None
        text = first.text.removesuffix(place.suffix[: first.replace_after]) if first else ""
        return {"text": text, "added_ms": _added_ms(request)}


def _first_name(text: str) -> str:
    found = NAME.match(text.lstrip())
    return found[0] if found else ""


def _added_ms(request: CompletionRequest) -> float:
    """Return the processor time that the names of a request take before its first token, in milliseconds."""
    started = time.thread_time()
    known_names(request, "")
    return round(1e3 * (time.thread_time() - started), 3)


def _with_comment(request: CompletionRequest, text: str) -> CompletionRequest:
    """Return a request with a line comment above the cursor's line."""
    above, line_break, line = request.prefix.rpartition("\n")
    mark = "#" if request.path.endswith(".py") else "//"
    indent = line[: len(line) - len(line.lstrip())]
    return replace(request, prefix=f"{above}{line_break}{indent}{mark} {text}\n{line}")
