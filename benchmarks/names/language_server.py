"""A client of any language server over stdio, which asks for completions and signatures as an editor does."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEYWORD = 14
"""Kind of an item (LSP 3.17, CompletionItemKind)."""
SETTINGS = {"analysis": {"include": ["none"], "diagnosticMode": "openFilesOnly", "indexing": False}}
"""Answer to each question about settings: only open files are analysed, so that a start is quick."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a server says at a place.

    Attributes:
        names: Texts that its items insert; none if there are keywords among them, as the plugins take them.
        is_incomplete: Whether there may be more.
        signature: Label of the active signature; "" for none.
        ms: Time of the answer to `textDocument/completion`.
        warm_ms: Time of a second answer at the same place.
    """

    names: tuple[str, ...]
    is_incomplete: bool
    signature: str
    ms: float
    warm_ms: float


class LanguageServer:
    """A process of a language server.

    Args:
        command: Its command line.
        root: Folder of the workspace.
    """

    def __init__(self, command: str, root: Path) -> None:
        self._process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=root
        )
        self._number = 0
        item = {"labelDetailsSupport": True, "snippetSupport": False}
        capabilities = {
            "textDocument": {"completion": {"completionItem": item, "contextSupport": True}, "signatureHelp": {}},
            "workspace": {"configuration": True, "workspaceFolders": True},
        }
        folder = {"uri": root.as_uri(), "name": root.name}
        self.request(
            "initialize",
            {"processId": None, "rootUri": folder["uri"], "workspaceFolders": [folder], "capabilities": capabilities},
        )
        self.notify("initialized", {})

    def known_at(self, path: Path, language: str, before: str, after: str) -> Known:
        """Return what the server says at a cursor."""
        uri = path.as_uri()
        document = {"uri": uri, "languageId": language, "version": 1, "text": before + after}
        self.notify("textDocument/didOpen", {"textDocument": document})
        line, column = before.count("\n"), len(before.rpartition("\n")[2].encode("utf-16-le")) // 2
        asked = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
        found, ms = self._timed("textDocument/completion", {**asked, "context": {"triggerKind": 1}})
        _, warm_ms = self._timed("textDocument/completion", {**asked, "context": {"triggerKind": 1}})
        signatures = self.request("textDocument/signatureHelp", asked) or {}
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        items = found.get("items", []) if isinstance(found, dict) else found or []
        is_incomplete = isinstance(found, dict) and bool(found.get("isIncomplete"))
        is_of_any_place = any(item.get("kind") == KEYWORD for item in items)
        names = () if is_of_any_place else tuple(dict.fromkeys(_inserted(item) for item in items))
        labels = [each["label"] for each in signatures.get("signatures", [])]
        active = signatures.get("activeSignature") or 0
        return Known(names, is_incomplete, labels[active] if active < len(labels) else "", ms, warm_ms)

    def _timed(self, method: str, params: object) -> tuple[Any, float]:
        started = time.perf_counter()
        found = self.request(method, params)
        return found, round(1e3 * (time.perf_counter() - started), 1)

    def request(self, method: str, params: object) -> Any:  # noqa: ANN401 - untyped JSON
        """Return a server's answer, None if it is an error. Its own requests get their answers meanwhile."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message and "id" in message:
                is_settings = message["method"] == "workspace/configuration"
                answer = [SETTINGS for _ in message["params"]["items"]] if is_settings else None
                self._send({"id": message["id"], "result": answer})
            elif message.get("id") == self._number:
                return message.get("result")

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while (header := self._process.stdout.readline()) not in (b"\r\n", b""):
            if header.lower().startswith(b"content-length:"):
                length = int(header.split(b":")[1])
        if not length:
            raise SystemExit("The language server has ended.")
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return message


def _inserted(item: dict[str, Any]) -> str:
    edit = item.get("textEdit") or {}
    return str(item.get("filterText") or edit.get("newText") or item.get("insertText") or item["label"])
