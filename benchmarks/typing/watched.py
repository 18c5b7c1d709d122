"""draftline's editor in benchmarks.typing with its screen printed before each key, to see what who types sees."""

from __future__ import annotations

from benchmarks.typing.assistant import Offer
from benchmarks.typing.draftline import DraftlineEditor


class WatchedEditor(DraftlineEditor):
    """An editor that prints its line of the cursor, with the suggestion in brackets, before each key."""

    def offer(self) -> Offer | None:
        """See `Assistant`."""
        found = super().offer()
        start, end = self.text.rfind("\n", 0, self.cursor) + 1, self.text.find("\n", self.cursor)
        after = self.text[self.cursor : end if end >= 0 else None]
        suggestion = "" if found is None else found.text.replace("\n", "⏎")
        replaced = f" in place of {found.replaced}" if found is not None and found.replaced else ""
        print(f"  {self.text[start : self.cursor]}⟦{suggestion}⟧{after}{replaced}")
        return found

    def accept(self, offer: Offer, length: int) -> None:
        """See `Assistant`."""
        print(f"  accepted {offer.text[:length]!r}")
        super().accept(offer, length)
