"""What an editor knows of its documents and requests, and what must hold of every answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.torture.echo_engine import echo
from tests.torture.raw_client import Message
from tests.torture.tally import Round
from tests.torture.text_model import TextModel

_CLOSERS = frozenset(")]}>\"'`")
_CANCELLED = -32800


@dataclass(slots=True)
class Asked:
    """A request's text before and after the cursor, in its own document or cell."""

    prefix: str
    suffix: str

    def leads_to(self, now: Asked, text: str, item: str, *, whole: bool) -> bool:
        """Whether an item at another moment is what remains of the suggestion `text` for this request."""
        if not now.prefix.startswith(self.prefix) or not _closers_apart(self.suffix, now.suffix):
            return False
        told = now.prefix[len(self.prefix) :] + item
        return told == text if whole else text.startswith(told)


@dataclass(slots=True)
class Document:
    """One document or cell as the editor has it.

    Attributes:
        above: Text of the notebook's cells above, as one program.
        told: What the engine says to each request that it may have been asked.
        places: The same by version and position.
    """

    uri: str
    language: str
    model: TextModel
    above: Callable[[], str] = field(default=lambda: "")
    version: int = 1
    told: dict[str, Asked] = field(default_factory=dict)
    places: dict[tuple[int, int, int], Asked] = field(default_factory=dict)

    def item(self) -> dict[str, object]:
        """It as a TextDocumentItem."""
        return {"uri": self.uri, "languageId": self.language, "version": self.version, "text": self.model.text}

    def ask(self, offset: int) -> tuple[Asked, dict[str, int]]:
        """Remember a request at an offset."""
        asked = Asked(self.model.text[:offset], self.model.text[offset:])
        self.may_see(asked)
        position = self.model.position(offset)
        self.places.pop((self.version, position["line"], position["character"]), None)
        self.places[self.version, position["line"], position["character"]] = asked
        return asked, position

    def may_see(self, asked: Asked) -> None:
        """The engine may be asked with the cells above as they are now: a request waits a moment before it goes."""
        text = echo(self.above() + asked.prefix, asked.suffix)
        self.told.pop(text, None)  # the newest is last, and the oldest are forgotten first
        self.told[text] = asked

    def is_told(self, now: Asked, item: str, *, whole: bool) -> bool:
        """Whether an item is what remains at `now` of what the engine said to a request."""
        return any(asked.leads_to(now, text, item, whole=whole) for text, asked in reversed(self.told.items()))


@dataclass(slots=True)
class Pending:
    """A request that was sent."""

    document: Document | None
    asked: Asked | None
    position: dict[str, int]
    sent_s: float
    must_answer: bool = False


class AnswerChecker:
    """Holds answers against the model.

    Attributes:
        offers: Items that were answered lately: document, offset of the cursor, item.
    """

    def __init__(self, tally: Round) -> None:
        self.tally = tally
        self.offers: list[tuple[Document, int, Message]] = []

    def reply(self, pending: Pending, reply: Message) -> None:
        """Check what a request was answered with."""
        if "error" in reply:
            if reply["error"]["code"] != _CANCELLED:
                self.tally.found(f"a request was refused: {reply['error']['message'][:100]}")
            return
        items = reply["result"]["items"]
        if pending.must_answer and not items and _is_unicode(pending):
            self.tally.found("no item for a manual request")
        if len(items) > 1:
            self.tally.found("doubled: more items than were asked for")
        for item in items:
            self._item(pending, item)

    def _item(self, pending: Pending, item: Message) -> None:
        document, asked = pending.document, pending.asked
        text = item["insertText"]
        if not document.is_told(asked, text, whole=True):
            self.tally.found(f"a stale or foreign item: {document.model.encoding}")
        if item["range"]["start"] != pending.position:
            self.tally.found("misplaced: an item's range does not start at the cursor")
        if item["range"]["end"] == pending.position:
            self.offers.append((document, len(asked.prefix), item))
            del self.offers[:-20]
        elif not _closes(item["range"], asked):
            self.tally.found("misplaced: an item replaces more than closers")

    def partials(self, known: dict[str, Document], notifications: list[Message]) -> None:
        """Every partial text is the beginning of what its request is answered with."""
        for message in notifications:
            params = message["params"]
            document = known.get(params.get("uri", ""))
            if message["method"] != "draftline/partialCompletion" or document is None:
                continue
            position = params["position"]
            now = document.places.get((params["version"], position["line"], position["character"]))
            texts = [item["insertText"] for item in params["items"]]
            if now is None or not all(document.is_told(now, text, whole=False) for text in texts):
                self.tally.found("a stale partial")
        notifications.clear()
        for document in known.values():
            _forget_oldest(document.places)
            _forget_oldest(document.told)


def _forget_oldest(known: dict) -> None:
    """A cancelled request may still hear of its text: some are kept."""
    for old in list(known)[:-100]:
        del known[old]


def _closers_apart(before: str, now: str) -> bool:
    """Whether only closers were typed over since, or at most three were added."""
    longer, shorter = (before, now) if len(before) >= len(now) else (now, before)
    head = longer[: len(longer) - len(shorter)]
    return (len(head) <= 3 or longer is before) and longer.endswith(shorter) and _CLOSERS.issuperset(head)


def _closes(range_: Message, asked: Asked) -> bool:
    count = range_["end"]["character"] - range_["start"]["character"]
    same_line = range_["end"]["line"] == range_["start"]["line"]
    return same_line and 0 < count <= 3 and _CLOSERS.issuperset(asked.suffix[:count])


def _is_unicode(pending: Pending) -> bool:
    return not any("\ud800" <= one <= "\udfff" for one in pending.asked.prefix + pending.asked.suffix)
