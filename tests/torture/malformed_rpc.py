"""Messages that no editor should send: broken JSON, wrong types, huge numbers, deep nesting, broken headers."""

from __future__ import annotations

import copy
import json
import random
import time

from tests.torture.echo_engine import echo
from tests.torture.raw_client import LanguageClient, framed
from tests.torture.tally import Round
from tests.torture.world import ANSWER_S, World

SECONDS = 12.0
BATCH = 60
PROBE = "file:///nowhere/probe.py"
_OTHER = "file:///nowhere/other.py"
_POSITION = {"line": 0, "character": 1}
_RANGE = {"start": _POSITION, "end": _POSITION}
_ITEM = {"uri": _OTHER, "languageId": "python", "version": 1, "text": "x = 1\n"}
_COMMAND = {"command": "draftline.accepted", "arguments": ["id", 0]}
_CELL = {"kind": 2, "document": "cell:1"}

REQUESTS = {
    "textDocument/inlineCompletion": {
        "textDocument": {"uri": _OTHER},
        "position": _POSITION,
        "context": {"triggerKind": 2},
    },
    "workspace/executeCommand": _COMMAND,
    "initialize": {"processId": None, "rootUri": None, "capabilities": {}},
    "no/such/method": {"a": [1]},
}
NOTIFICATIONS = {
    "textDocument/didOpen": {"textDocument": _ITEM},
    "textDocument/didChange": {
        "textDocument": {"uri": _OTHER, "version": 2},
        "contentChanges": [{"range": _RANGE, "text": "y"}, {"text": "z"}],
    },
    "textDocument/didClose": {"textDocument": {"uri": _OTHER}},
    "textDocument/didSave": {"textDocument": {"uri": _OTHER}},
    "notebookDocument/didOpen": {
        "notebookDocument": {"uri": "file:///n.ipynb", "notebookType": "t", "version": 1, "cells": [_CELL]},
        "cellTextDocuments": [{**_ITEM, "uri": "cell:1"}],
    },
    "notebookDocument/didChange": {
        "notebookDocument": {"uri": "file:///n.ipynb", "version": 2},
        "change": {
            "cells": {
                "structure": {"array": {"start": 0, "deleteCount": 1, "cells": [_CELL]}, "didOpen": [], "didClose": []},
                "textContent": [{"document": {"uri": "cell:1", "version": 2}, "changes": [{"text": "a"}]}],
            }
        },
    },
    "notebookDocument/didClose": {"notebookDocument": {"uri": "file:///n.ipynb"}, "cellTextDocuments": []},
    "textDocument/didShowCompletion": {"item": {"command": _COMMAND}},
    "textDocument/didPartiallyAcceptCompletion": {"item": {"command": _COMMAND}, "acceptedLength": 3},
    "draftline/didRejectCompletion": {"id": "x", "reason": "dismissed"},
    "draftline/didMoveCursor": {"uri": _OTHER, "position": _POSITION},
    "draftline/diagnostics": {
        "uri": _OTHER,
        "version": 1,
        "diagnostics": [{"range": _RANGE, "severity": 1, "message": "x is not defined"}],
    },
    "draftline/names": {"uri": _OTHER, "version": 1, "position": _POSITION, "names": ["first", "second"]},
    "workspace/didChangeWatchedFiles": {"changes": [{"uri": _OTHER, "type": 2}]},
    "workspace/didChangeWorkspaceFolders": {
        "event": {"added": [{"uri": "file:///nowhere", "name": "n"}], "removed": []}
    },
    "workspace/didChangeConfiguration": {"settings": {"draftline": {"maxTokens": 64, "quietMs": 0, "indexFiles": 10}}},
    "$/cancelRequest": {"id": 1},
    "$/setTrace": {"value": "off"},
}


def hostile_value(chance: random.Random) -> object:
    """A value that may stand where another type or range is expected."""
    deep: object = 0
    for _ in range(chance.choice((20, 90))):
        deep = [deep]
    return chance.choice(
        (
            None,
            True,
            -1,
            0,
            2**31,
            2**64,
            -(2**70),
            1e308,
            0.5,
            "",
            "x" * 3000,
            "\0",
            "\ud800",
            "file://\0/a",
            "file:///%00",
            "file:///\ud83d.py",
            "file:////////",
            "http://[",
            "untitled:",
            [],
            {},
            [[]],
            {"a": {}},
            deep,
            [None] * 50,
            "NaN",
            "../../etc/passwd",
            10**400,
        )
    )


def mutate(value: object, chance: random.Random) -> object:
    """The same JSON with one node replaced, removed, or added."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        name = chance.choice(list(value))
        if chance.random() < 0.1:
            return {key: one for key, one in value.items() if key != name}
        return {**value, name: mutate(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        index = chance.randrange(len(value))
        return [*value[:index], mutate(value[index], chance), *value[index + 1 :]]
    return hostile_value(chance)


class Attacker:
    """Sends broken messages, and now and then asks whether the server still works."""

    def __init__(self, client: LanguageClient, tally: Round, chance: random.Random) -> None:
        self.client = client
        self.tally = tally
        self.chance = chance
        self._version = 1
        self._number = 0
        self._asked: list[str] = []
        self._open()

    def _open(self) -> None:
        document = {"uri": PROBE, "languageId": "python", "version": 1, "text": ""}
        self.client.notify("textDocument/didOpen", {"textDocument": document})

    def batch(self) -> None:
        """Broken messages, then a probe that must be answered rightly, and an answer to each request among them."""
        kinds = (
            self._wrong_params,
            self._wrong_params,
            self._wrong_params,
            self._wrong_envelope,
            self._broken_json,
            self._broken_headers,
        )
        data = b"".join(self.chance.choice(kinds)() for _ in range(BATCH))
        self.tally.counts["malformed_messages"] += BATCH
        self.client.send_bytes(data)
        self._probe()
        for id_ in self._asked:
            try:
                self.client.reply(id_, ANSWER_S)
            except TimeoutError:
                self.tally.found("a malformed request was not answered")
                break
        self._asked.clear()
        self.client.notifications.clear()
        self.client.repeated.clear()  # malformed requests may name the same id twice

    def _probe(self) -> None:
        self._version += 1
        text = f"value_{self._version} = \n"
        change = {"textDocument": {"uri": PROBE, "version": self._version}, "contentChanges": [{"text": text}]}
        self.client.notify("textDocument/didChange", change)
        at = len(text) - 1
        place = {"textDocument": {"uri": PROBE}, "position": {"line": 0, "character": at}}
        sent = time.monotonic()
        id_ = self.client.ask("textDocument/inlineCompletion", {**place, "context": {"triggerKind": 1}})
        self.tally.counts["requests"] += 1
        items = self.client.reply(id_, ANSWER_S)["result"]["items"]
        self.tally.waited(sent)
        if [item["insertText"] for item in items] != [echo(text[:at], text[at:])]:
            self.tally.found("after malformed messages a good request gets another answer")

    def _wrong_params(self) -> bytes:
        if self.chance.random() < 0.3:
            method = self.chance.choice(list(REQUESTS))
            self._number += 1
            id_ = f"malformed-{self._number}"
            self._asked.append(id_)
            return _message(id=id_, method=method, params=mutate(copy.deepcopy(REQUESTS[method]), self.chance))
        method = self.chance.choice(list(NOTIFICATIONS))
        return _message(method=method, params=mutate(copy.deepcopy(NOTIFICATIONS[method]), self.chance))

    def _wrong_envelope(self) -> bytes:
        method = self.chance.choice(list(NOTIFICATIONS))
        whole = {"jsonrpc": "2.0", "method": method, "params": NOTIFICATIONS[method]}
        if self.chance.random() < 0.3:
            whole = {"jsonrpc": "2.0", "id": "never-asked", "result": hostile_value(self.chance)}
        return framed(json.dumps(mutate(whole, self.chance)).encode())

    def _broken_json(self) -> bytes:
        body = json.dumps(
            {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": _ITEM}}
        ).encode()
        cut = self.chance.randrange(1, len(body))
        return framed(
            self.chance.choice(
                (
                    body[:cut],
                    body[:cut] + b"\xff\xfe" + body[cut:],
                    b"[" * 100_000,
                    b"[1,2]",
                    b"null",
                    b"{}",
                    b'"',
                    b"1e999",
                    b"9" * 5000,
                    b'{"id":' + b"9" * 5000 + b"}",
                    b'{"a":' * 3000 + b"1" + b"}" * 3000,
                    b"\0" * 100,
                    b" ",
                )
            )
        )

    def _broken_headers(self) -> bytes:
        return self.chance.choice(
            (
                b"\r\n",
                b"Content-Length: abc\r\n\r\n",
                b"Content-Length: -5\r\n\r\n",
                b"X-Other: 1\r\n\r\n",
                b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                b"\0\xff\r\n",
                b"content-length: 0\r\n\r\n",
                b"Content-Length: 0\r\n\r\n",
                b"X: " + b"a" * 200_000 + b"\r\n",
                b":\r\n",
                b"Content-Length:\r\n\r\n",
            )
        )


def run(tally: Round, seconds: float = SECONDS) -> None:
    """One round: one server that hears nonsense all the time."""
    chance = random.Random(tally.seed)
    with World(tally, nonsense=True) as world:
        client = world.ready(telemetry=chance.random() < 0.5)
        attacker = Attacker(client, tally, chance)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                attacker.batch()
            except (EOFError, BrokenPipeError):
                tally.found(f"the server ended, status {client.process.wait()}")
                return
        world.check_server_memory(client)
        world.leave(client)


def _message(**fields: object) -> bytes:
    return framed(json.dumps({"jsonrpc": "2.0", **fields}).encode())
