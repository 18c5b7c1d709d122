"""Clients that cannot be had as packages: the real server's items, and each client's own conversion of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.e2e.clients.client import Client
from tests.e2e.clients.cursors import Cursor
from tests.e2e.clients.forced_host import COMMAND
from tests.torture.raw_client import LanguageClient

LANGUAGES = {"py": "python", "js": "javascript", "c": "c", "java": "java", "css": "css"}
ANSWER_S = 20.0


class _Replayed(Client):
    program: ClassVar[str]
    method: ClassVar[str]
    capabilities: ClassVar[dict[str, Any]]

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        self.server = LanguageClient(environment, COMMAND)
        self.server.initialize(clientInfo={"name": self.program}, capabilities={"textDocument": self.capabilities})
        self.server.notify("initialized", {})

    def accept(self, file: Path, cursor: Cursor) -> None:
        """Convert the first item; these editors have lines that end in a bare newline in memory."""
        before, after = (text.replace("\r\n", "\n") for text in (cursor.before, cursor.after))
        document = {"uri": file.as_uri(), "languageId": LANGUAGES[file.suffix[1:]], "version": 1}
        self.server.notify("textDocument/didOpen", {"textDocument": {**document, "text": before + after}})
        line = before.rpartition("\n")[2]
        position = {"line": before.count("\n"), "character": len(line.encode("utf-16-le")) // 2}
        params = {"textDocument": {"uri": document["uri"]}, "position": position, "context": {"triggerKind": 1}}
        reply = self.server.request(self.method, params, ANSWER_S)
        for item in (reply or {"items": []})["items"][:1]:
            text = self.converted(item, before, after)
            file.write_bytes(text.replace("\n", "\r\n" if "\r\n" in cursor.after else "\n").encode())

    def converted(self, item: dict[str, Any], before: str, after: str) -> str:
        """Return the document after the acceptance of an item."""
        raise NotImplementedError

    def close(self) -> None:
        """End the server."""
        self.server.close()


def _offset(position: dict[str, int], text: str) -> int:
    lines = text.split("\n")[: position["line"] + 1]
    last = lines.pop().encode("utf-16-le")[: 2 * position["character"]].decode("utf-16-le")
    return sum(len(line) + 1 for line in lines) + len(last)


class JetBrains(_Replayed):
    """LSP4IJ 0.20: what it would replace stays, and the item's text is inserted after it."""

    name = "JetBrains, LSP4IJ (replayed)"
    version = "0.20"
    shows = "ghost text, complete"
    program = "IntelliJ IDEA 2026.1"
    method = "textDocument/inlineCompletion"
    capabilities: ClassVar[dict[str, Any]] = {"inlineCompletion": {}}

    def converted(self, item: dict[str, Any], before: str, after: str) -> str:
        """Insert the text at the end of the range."""
        text = before + after
        end = _offset(item["range"]["end"], text)
        return text[:end] + item["insertText"] + text[end:]


class Sublime(_Replayed):
    """The package LSP of Sublime Text: each further line gets the indentation of the cursor's line."""

    name = "Sublime Text, LSP (replayed)"
    shows = "the completion menu"
    program = "Sublime Text LSP"
    method = "textDocument/completion"
    capabilities: ClassVar[dict[str, Any]] = {
        "completion": {"completionItem": {"insertTextModeSupport": {"valueSet": [2]}}}
    }

    def converted(self, item: dict[str, Any], before: str, after: str) -> str:
        """Replace the range by the text, which is indented."""
        text = before + after
        edit = item["textEdit"]
        start, end = (_offset(edit["range"][name], text) for name in ("start", "end"))
        line = before.rpartition("\n")[2]
        indentation = line[: len(line) - len(line.lstrip(" \t"))]
        return text[:start] + edit["newText"].replace("\n", "\n" + indentation) + text[end:]
