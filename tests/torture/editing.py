"""Edits, requests, cancels and acceptances at random in documents and notebooks, against a model of each text.

The engine's echo names the text that it saw, so every item proves which text and position the server used.
"""

from __future__ import annotations

import random
import time

from lsp_server.suggesting.ahead import LOOK_S
from tests.torture.answers import AnswerChecker, Document, Pending
from tests.torture.raw_client import LanguageClient
from tests.torture.tally import Round
from tests.torture.text_model import TextModel
from tests.torture.world import ANSWER_S, World

SECONDS = 20.0
LONGEST = 1500
_PIECES = ("x", "def f(", ")", "\n", "\r\n", "\r", "é", "😀", "\u2028", "\f", "\t", "    ", '"', "value = ", "\ud83d",
           "\ude00", "a" * 90, "{\n\n}", "\x0b\x85", "日本", "")  # fmt: skip
_WEIGHTS = (*(6,) * 14, 0.1, 0.1, *(2,) * 5)


class Typist:
    """One editor that types at random into several documents of one server."""

    def __init__(self, client: LanguageClient, tally: Round, chance: random.Random, encoding: str) -> None:
        self.client = client
        self.tally = tally
        self.chance = chance
        self.encoding = encoding
        self.pending: dict[int, Pending] = {}
        self.checker = AnswerChecker(tally)
        self.documents: list[Document] = []
        self.cells: list[Document] = []
        self._number = 0

    # --- what an editor does ----------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open a document."""
        document = self._new(self.chance.choice(("file:///nowhere/%C3%A9 {}.py", "untitled:Untitled-{}", "git:/a/{}")))
        self.documents.append(document)
        self.client.notify("textDocument/didOpen", {"textDocument": document.item()})

    def open_notebook(self) -> None:
        """Open a notebook with a few cells."""
        self.cells = [self._new("vscode-notebook-cell:/n.ipynb#{}") for _ in range(3)]
        self.client.notify(
            "notebookDocument/didOpen",
            {
                "notebookDocument": {"uri": "file:///n.ipynb", "notebookType": "jupyter-notebook", "version": 1,
                                     "cells": [_cell(one) for one in self.cells]},
                "cellTextDocuments": [one.item() for one in self.cells],
            },
        )  # fmt: skip

    def close(self) -> None:
        """Close a document, and open another."""
        if len(self.documents) > 1:
            document = self.documents.pop(self.chance.randrange(len(self.documents)))
            self._forget(document)
            self.client.notify("textDocument/didClose", {"textDocument": {"uri": document.uri}})
        self.open()

    def change_cells(self) -> None:
        """Insert, remove and move cells in one message."""
        start = self.chance.randrange(len(self.cells) + 1)
        gone = self.cells[start : start + self.chance.randrange(3)]
        new = [self._new("vscode-notebook-cell:/n.ipynb#{}") for _ in range(self.chance.randrange(3))]
        if not len(self.cells) - len(gone) + len(new):
            return
        self.cells[start : start + len(gone)] = new
        for cell in gone:
            self._forget(cell)
        structure = {
            "array": {"start": start, "deleteCount": len(gone), "cells": [_cell(one) for one in new]},
            "didOpen": [one.item() for one in new],
            "didClose": [{"uri": one.uri} for one in gone],
        }
        self._change_notebook({"structure": structure})

    def edit(self, document: Document | None = None) -> None:
        """Some changes in one message, most of them where the last one was, as people type."""
        document = document or self._any()
        changes: list[dict[str, object]] = []
        at = self.chance.choice(document.model.positions())
        for _ in range(self.chance.randint(1, 24)):
            change, at = self._change(document, at)
            changes.append(change)
        self._send_changes(document, changes)

    def ask(self, *, invoked: bool | None = None) -> int:
        """Ask somewhere, and do not wait."""
        document = self._any()
        asked, position = document.ask(self.chance.choice(document.model.positions()))
        by_hand = self.chance.random() < 0.5 if invoked is None else invoked
        return self._ask(Pending(document, asked, position, time.monotonic()), invoked=by_hand)

    def ask_and_check(self) -> None:
        """Ask by a key and wait: there is one item, and it tells the model's text."""
        number = self.ask(invoked=True)
        self.pending[number].must_answer = True
        self._hear(number)

    def cancel(self) -> None:
        """Withdraw a request, or one that was answered long ago."""
        id_ = self.chance.choice([*self.pending, 0, 1]) if self.pending else 0
        if id_ in self.pending:
            self.pending[id_].must_answer = False
        self.client.notify("$/cancelRequest", {"id": id_})

    def use_offer(self) -> None:
        """Show, accept, accept in part, dismiss or type along something that was offered."""
        if not self.checker.offers:
            return
        document, offset, item = self.checker.offers.pop(self.chance.randrange(len(self.checker.offers)))
        command = {key: item["command"][key] for key in ("command", "arguments")}
        match self.chance.randrange(5):
            case 0:
                self.client.notify("textDocument/didShowCompletion", {"item": {"command": command}})
            case 1:
                length = self.chance.randrange(1, 9)
                self.client.notify(
                    "textDocument/didPartiallyAcceptCompletion",
                    {"item": {"command": command}, "acceptedLength": length},
                )
            case 2:
                reason = self.chance.choice(("dismissed", "typedOver", "cursorMoved"))
                id_ = command["arguments"][0]
                self.client.notify("draftline/didRejectCompletion", {"id": id_, "reason": reason})
            case 3:
                after = self._insert(document, offset, item["insertText"])
                if after is not None:  # the server goes on from here before it is asked
                    document.ask(after)
                pending = Pending(None, None, {}, time.monotonic())
                self.pending[self.client.ask("workspace/executeCommand", command)] = pending
            case 4:
                typed = item["insertText"][: self.chance.randrange(1, 6)]
                after = self._insert(document, offset, typed)
                if after is not None and typed != "\r":
                    asked, position = document.ask(after)
                    self._ask(Pending(document, asked, position, time.monotonic()), invoked=False)

    def read(self) -> None:
        """Look at what is shown for so long that the server generates what follows it."""
        time.sleep(LOOK_S + 0.05)

    def move_cursor(self) -> None:
        """Rest the cursor somewhere."""
        document = self._any()
        position = document.model.position(self.chance.choice(document.model.positions()))
        self.client.notify("draftline/didMoveCursor", {"uri": document.uri, "position": position})

    def settle(self) -> None:
        """Wait until every request is answered."""
        for id_ in list(self.pending):
            self._hear(id_)
        if self.client.repeated:
            self.tally.found(f"answered twice: {len(self.client.repeated)} requests")
            self.client.repeated.clear()
        known = {document.uri: document for document in [*self.documents, *self.cells]}
        self.checker.partials(known, self.client.notifications)

    # --- how ---------------------------------------------------------------------------------------------------------

    def _new(self, uri: str) -> Document:
        self._number += 1
        language = self.chance.choice(("python", "typescript", "go"))
        document = Document(uri.format(self._number), language, TextModel("", self.encoding))
        document.model.set("".join(self._piece() for _ in range(self.chance.randrange(20))))
        if uri.startswith("vscode-notebook"):
            document.above = lambda: self._above(document)
        return document

    def _above(self, cell: Document) -> str:
        """As the server joins cells: those above in the same language, a blank line between two."""
        above = self.cells[: next(i for i, one in enumerate(self.cells) if one is cell)]
        return "".join(one.model.text.rstrip("\r\n") + "\n\n" for one in above if one.language == cell.language)

    def _any(self) -> Document:
        return self.chance.choice([*self.documents, *self.cells])

    def _piece(self) -> str:
        return self.chance.choices(_PIECES, _WEIGHTS)[0]

    def _change(self, document: Document, at: int) -> tuple[dict[str, object], int]:
        model = document.model
        self.tally.counts["edits"] += 1
        if self.chance.random() < 0.01 or not model.is_unicode or len(model.text) > LONGEST:
            model.set("".join(self._piece() for _ in range(self.chance.randrange(60))))
            return {"text": model.text}, 0
        positions = model.positions()
        if self.chance.random() < 0.2 or at not in positions:
            at = self.chance.choice(positions)
        end = self.chance.choice(positions) if self.chance.random() < 0.03 else at
        if self.chance.random() < 0.2:
            end = max((one for one in positions if one <= at + self.chance.randrange(8)), default=at)
        start, end = min(at, end), max(at, end)
        text = self._piece()
        change = model.replace(start, end, text)
        if self.chance.random() < 0.05:
            change["range"] = {"start": change["range"]["end"], "end": change["range"]["start"]}
        return change, start + len(text)

    def _insert(self, document: Document, offset: int, text: str) -> int | None:
        """Insert what was offered where it was offered; gives the place after it, None where that is gone."""
        if document not in self.documents and document not in self.cells:
            return None
        if offset not in document.model.positions():
            return None
        self.tally.counts["edits"] += 1
        length = len(document.model.text)
        self._send_changes(document, [document.model.replace(offset, offset, text)])
        after = offset + len(document.model.text) - length
        return after if after in document.model.positions() else None

    def _send_changes(self, document: Document, changes: list[dict[str, object]]) -> None:
        document.version += self.chance.randint(1, 3)
        named = {"uri": document.uri, "version": document.version}
        if document in self.cells:
            self._change_notebook({"textContent": [{"document": named, "changes": changes}]})
        else:
            self.client.notify("textDocument/didChange", {"textDocument": named, "contentChanges": changes})

    def _change_notebook(self, cells: dict[str, object]) -> None:
        self._number += 1
        named = {"uri": "file:///n.ipynb", "version": self._number}
        self.client.notify("notebookDocument/didChange", {"notebookDocument": named, "change": {"cells": cells}})
        for pending in self.pending.values():
            if pending.document in self.cells and pending.asked is not None:
                pending.document.may_see(pending.asked)

    def _forget(self, document: Document) -> None:
        for pending in self.pending.values():
            if pending.document is document:
                pending.must_answer = False

    def _ask(self, pending: Pending, *, invoked: bool) -> int:
        self.tally.counts["requests"] += 1
        for older in self.pending.values():
            if older.document is pending.document:
                older.must_answer = False  # the newer one takes over
        params = {
            "textDocument": {"uri": pending.document.uri},
            "position": pending.position,
            "context": {"triggerKind": 1 if invoked else 2},
        }
        id_ = self.client.ask("textDocument/inlineCompletion", params)
        self.pending[id_] = pending
        return id_

    def _hear(self, id_: int) -> None:
        pending = self.pending.pop(id_)
        try:
            reply = self.client.reply(id_, ANSWER_S)
        except TimeoutError:
            self.tally.found(f"a request was not answered within {ANSWER_S:.0f} s")
            return
        self.tally.waited(pending.sent_s)
        if pending.document is not None:
            self.checker.reply(pending, reply)


def run(tally: Round, seconds: float = SECONDS) -> None:
    """One round: a server, and a typist of one position encoding."""
    chance = random.Random(tally.seed)
    encoding = chance.choice(("utf-8", "utf-16", "utf-32"))
    with World(tally) as world:
        client = world.ready(encoding=encoding, telemetry=chance.random() < 0.7)
        typist = Typist(client, tally, chance, encoding)
        for _ in range(3):
            typist.open()
        typist.open_notebook()
        acts = {
            typist.edit: 40, typist.ask: 24, typist.ask_and_check: 14, typist.cancel: 5, typist.use_offer: 12,
            typist.move_cursor: 2, typist.close: 0.5, typist.change_cells: 1, typist.settle: 2, typist.read: 0.1,
        }  # fmt: skip
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for act in chance.choices(list(acts), list(acts.values()), k=20):
                act()
        typist.settle()
        world.check_server_memory(client)
        world.leave(client)


def _cell(document: Document) -> dict[str, object]:
    return {"kind": 2, "document": document.uri}
