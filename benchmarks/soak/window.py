"""One editor window of the week: a language server with some workspaces, in which real code is typed."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.language_client import LanguageClient

_READY_S = 600.0
_ANSWER_S = 60.0
_KEYS_BETWEEN_ANSWERS = 25
_MOST_OPEN = 8


@dataclass(slots=True)
class _Document:
    """An open document: where its next line is typed."""

    uri: str
    lines: list[str]
    version: int = 1


class Window:
    """A server process, and somebody who types in it."""

    def __init__(
        self, environment: Mapping[str, str], folders: list[Path], settings: Mapping[str, object], chance: random.Random
    ) -> None:
        self._client = LanguageClient(environment)
        self._folders = folders
        self._chance = chance
        self._open: list[_Document] = []
        self.keys = 0
        self._client.initialize(
            capabilities={"textDocument": {"inlineCompletion": {}}},
            workspaceFolders=[{"uri": folder.as_uri(), "name": folder.name} for folder in folders],
            initializationOptions={"debounceMs": 0, "quietMs": 0, "gate": "off", **settings},
        )
        self._client.notify("initialized", {})
        self._client.wait_for_status("ready", _READY_S)

    def type_line(self) -> list[float]:
        """Type a line of a document once more and take it back; gives the seconds that answers took.

        Every key is followed by a request, as in editors; most of them are taken over by the next key's.
        """
        document = self._document()
        number = self._chance.randrange(len(document.lines))
        text, typed = document.lines[number], 0
        waits = []
        self._change(document, number, 0, 0, "\n")
        while typed < len(text):
            self._change(document, number, typed, typed, text[typed])
            typed += 1
            asked = self._ask(document, number, typed, invoked=False)
            self.keys += 1
            if self.keys % _KEYS_BETWEEN_ANSWERS == 0:
                asked = self._ask(document, number, typed, invoked=True)
                started = time.perf_counter()
                reply = self._client.reply(asked, _ANSWER_S)
                waits.append(time.perf_counter() - started)
                self._note_fate(reply["result"]["items"])
        self._take_back(document, number)
        return waits

    @property
    def resident_bytes(self) -> int:
        """Of the server's process."""
        return int(psutil.Process(self._client.process.pid).memory_info().rss)

    def close(self) -> bool:
        """Shut down as an editor does; whether the server ended by itself."""
        self._client.request("shutdown", None, _ANSWER_S)
        self._client.notify("exit", {})
        return self._client.close()

    def _document(self) -> _Document:
        """One that is open, or a new one; the oldest is closed where too many are open."""
        if self._open and self._chance.random() < 0.8:
            return self._chance.choice(self._open)
        path = self._chance.choice(sorted(self._chance.choice(self._folders).glob("*.py")))
        known = next((one for one in self._open if one.uri == path.as_uri()), None)
        if known is not None:
            return known
        text = path.read_text(encoding="utf-8")
        item = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
        self._client.notify("textDocument/didOpen", {"textDocument": item})
        self._open.append(_Document(path.as_uri(), [line for line in text.split("\n") if line.strip()]))
        if len(self._open) > _MOST_OPEN:
            self._client.notify("textDocument/didClose", {"textDocument": {"uri": self._open.pop(0).uri}})
        return self._open[-1]

    def _change(self, document: _Document, line: int, start: int, end: int, text: str) -> None:
        document.version += 1
        range_ = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
        named = {"uri": document.uri, "version": document.version}
        change = {"range": range_, "text": text}
        self._client.notify("textDocument/didChange", {"textDocument": named, "contentChanges": [change]})

    def _take_back(self, document: _Document, line: int) -> None:
        """Remove the typed line, so that documents keep their length all week."""
        document.version += 1
        range_ = {"start": {"line": line, "character": 0}, "end": {"line": line + 1, "character": 0}}
        named = {"uri": document.uri, "version": document.version}
        change = {"range": range_, "text": ""}
        self._client.notify("textDocument/didChange", {"textDocument": named, "contentChanges": [change]})
        self._client.replies.clear()
        self._client.notifications.clear()

    def _ask(self, document: _Document, line: int, character: int, *, invoked: bool) -> int:
        place = {"textDocument": {"uri": document.uri}, "position": {"line": line, "character": character}}
        kind = {"triggerKind": 1 if invoked else 2}
        return self._client.ask("textDocument/inlineCompletion", {**place, "context": kind})

    def _note_fate(self, items: list[dict[str, object]]) -> None:
        """Some suggestions are shown, some dismissed, as the signals of a day are."""
        if not items:
            return
        command = items[0]["command"]
        if self._chance.random() < 0.5:
            self._client.notify("textDocument/didShowCompletion", {"item": {"command": command}})
        elif isinstance(command, dict):
            id_ = command["arguments"][0]
            self._client.notify("draftline/didRejectCompletion", {"id": id_, "reason": "typedOver"})
