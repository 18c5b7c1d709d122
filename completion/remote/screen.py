"""What a client shows of one request, and which text of a model server may still appear there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from completion.remote.standby import Answer
from completion.request import Suggestion

UNREAD_S = 0.2
"""Time for which nobody has read a text that appeared, in seconds: a fixation in reading takes 0.2 to 0.25 s (Rayner,
"Eye movements in reading and information processing: 20 years of research")."""


@dataclass(slots=True)
class Screen:
    """What a client shows of one request.

    Attributes:
        suggestion: The first suggestion; None while there is none.
        since: When its text appeared, by the clock.
        was_replaced: Whether it has taken the place of another text.
    """

    clock: Callable[[], float]
    suggestion: Suggestion | None = None
    since: float = 0.0
    was_replaced: bool = False

    @property
    def text(self) -> str:
        """The text of the first suggestion, "" while there is none."""
        return self.suggestion.text if self.suggestion is not None else ""

    def show(self, suggestion: Suggestion | None) -> None:
        """Note what is shown from now on."""
        if suggestion is None or not suggestion.text:
            return
        if not self.text:
            self.since = self.clock()
        self.was_replaced = self.was_replaced or not suggestion.text.startswith(self.text)
        self.suggestion = suggestion

    def takes(self, answer: Answer) -> bool:
        """Return whether the server's text may be shown now, and is more than what is shown, or complete."""
        found = answer.suggestion
        if found is None or (answer.is_over and not answer.is_complete):
            return False
        if found.text.startswith(self.text):
            return len(found.text) > len(self.text) or answer.is_complete
        is_unread = not self.was_replaced and self.clock() - self.since < UNREAD_S
        return is_unread and not self.text.startswith(found.text)

    def refuses(self, answer: Answer) -> bool:
        """Return whether the server's text can no longer be shown, whatever it goes on with."""
        found = answer.suggestion
        if found is None or self.takes(answer):
            return False
        return answer.is_complete or not self.text.startswith(found.text)
