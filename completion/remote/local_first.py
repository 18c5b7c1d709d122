"""Local first, remote when better: the local model answers at once, and the server's text takes over where it may.

Text on the screen only grows. So the server's text takes over if it starts with what is shown, or if nothing is shown
yet, or once within `UNREAD_S`. What the server does not say in time is not waited for. If it fails in the middle
of its text, the local model goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace

from completion.cancellation import CancelToken
from completion.completer import joined
from completion.edits import NextEditRequest, NextEdits
from completion.engine import Engine
from completion.errors import CancelledError
from completion.memory import Held, MemoryPart
from completion.remote.standby import Answer, Standby
from completion.request import Closing, CompletionEvent, CompletionRequest, Suggestion, WorkspaceUpdate

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


class LocalFirst:
    """Completes with a local model at once, and with a model server where that is better and in time.

    Alternatives, next edits and workspaces are the local model's; the server gets one suggestion to make. A workspace
    stays on this computer, apart from the snippets of prompts.
    """

    def __init__(self, local: Engine, standby: Standby, clock: Callable[[], float] = time.monotonic) -> None:
        self._local = local
        self._standby = standby
        self._clock = clock
        # The last request, for one suggestion, and its suggestion if the server has made it: alternatives may follow.
        self._last: tuple[CompletionRequest | None, Suggestion | None] = None, None
        self.next_edits: Callable[[NextEditRequest, CancelToken], NextEdits] = local.next_edits
        self.update_workspace: Callable[[WorkspaceUpdate, CancelToken], Generator[None]] = local.update_workspace

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """Yield the suggestions for a request while they grow; the last event has `done`.

        Raises:
            CancelledError: After `cancel`, which ends the server's request, too.
            DraftlineError: The local model cannot complete the request. A failure of the server is no error.
        """
        alone = replace(request, suggestions=1, ahead=False, order=0)
        if not request.remote:
            yield from self._local.complete(request, cancel)
        elif self._last[0] == alone and request.suggestions > 1 and not request.invoked:
            yield from self._with_alternatives(self._last[1], request, cancel)
        else:
            screen = Screen(self._clock)
            made = yield from self._made(request, screen, cancel)
            self._last = alone, made

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Bring both caches up to date for a request that may follow. The server's is not waited for.

        Raises:
            CancelledError: What is computed until then stays in the cache.
        """
        if request.remote:
            self._standby.prepare(self._for_server(request, cancel))
        self._local.prepare(request, cancel)

    def forget(self, closing: Closing) -> None:
        """Free the memory of documents and workspaces that no client uses any more."""
        if self._last[0] is not None and self._last[0].document in closing.documents:
            self._last = None, None
        self._standby.forget(closing)
        self._local.forget(closing)

    def held(self) -> Mapping[MemoryPart, Held]:
        """Return what both engines hold in memory, by part."""
        ours, theirs = self._local.held(), self._standby.held()
        return {part: ours.get(part, Held()) + theirs.get(part, Held()) for part in {*ours, *theirs}}

    def close(self) -> None:
        """End the server's requests, and save what the drafters learned."""
        self._standby.close()
        self._local.close()

    def _for_server(self, request: CompletionRequest, cancel: CancelToken) -> CompletionRequest:
        """Return the request as the server gets it: with the local prompt's snippets, for one suggestion."""
        context = request.context or self._local.snippets(request, cancel)
        return replace(request, context=context, workspace="", suggestions=1, tells_greedy=False)

    def _made(
        self, request: CompletionRequest, screen: Screen, cancel: CancelToken
    ) -> Generator[CompletionEvent, None, Suggestion | None]:
        """Yield the events of a request that both engines get; return the first suggestion if the server made it."""
        own = CancelToken()

        def take_over(answer: Answer) -> None:
            if screen.takes(answer):
                own.cancel()  # the local model may be in the middle of a long prompt

        answer = self._standby.ask(self._for_server(request, cancel), take_over)
        if answer is None:
            yield from self._local.complete(request, cancel)
            return None
        request = replace(request, tells_greedy=False)  # the server's text may be another one
        try:
            with cancel.calling(own.cancel, own.hurry), cancel.calling(answer.wake, answer.wake):
                last = yield from self._locally(request, answer, screen, own)
                cancel.raise_if_cancelled()
                if last is not None:
                    yield from self._better(request, last, answer, screen, own)
                    cancel.raise_if_cancelled()
                    if not screen.takes(answer):
                        yield _with_second(last, answer, request.suggestions)
                        return None
                first = yield from self._followed(request, answer, screen, cancel)
        finally:
            answer.cancel.cancel()
        if request.suggestions > 1 and first.suggestions:
            yield replace(first, done=False, whole=1)
            yield from self._with_alternatives(first.suggestions[0], request, cancel)
        else:
            yield first
        return screen.suggestion

    def _locally(
        self, request: CompletionRequest, answer: Answer, screen: Screen, own: CancelToken
    ) -> Generator[CompletionEvent, None, CompletionEvent | None]:
        """Yield the local events until the server's text takes over; return the last event if it does not."""
        with suppress(CancelledError), closing(self._local.complete(request, own)) as events:
            for event in events:
                if event.done:
                    return event
                if screen.takes(answer):
                    return None
                if request.suggestions == 1 and screen.refuses(answer):
                    answer.cancel.cancel()
                screen.show(event.suggestions[0] if event.suggestions else None)
                yield event
        return None

    def _better(
        self, request: CompletionRequest, last: CompletionEvent, answer: Answer, screen: Screen, own: CancelToken
    ) -> Generator[CompletionEvent]:
        """Wait until the server's text takes over, or does not in time. Show the local suggestions meanwhile."""

        def is_decided() -> bool:
            is_useless = request.suggestions == 1 and screen.refuses(answer)
            return screen.takes(answer) or is_useless or answer.is_over

        if last.suggestions and not is_decided():
            screen.show(last.suggestions[0])
            yield replace(last, done=False, whole=len(last.suggestions))
        deadline_s = self._standby.deadline.seconds
        while not is_decided():
            if not answer.wait(answer.last, deadline_s, lambda: own.cancelled or own.hurried):
                if answer.silent_s >= deadline_s:
                    self._standby.missed(answer)
                return

    def _followed(
        self, request: CompletionRequest, answer: Answer, screen: Screen, cancel: CancelToken
    ) -> Generator[CompletionEvent, None, CompletionEvent]:
        """Yield the server's events, then those of the local model if the server does not end; return the last one."""
        event = None
        while not screen.refuses(answer):
            before, event = event, answer.last
            if event is not None and event is not before and screen.takes(answer):
                screen.show(answer.suggestion)
                if event.done:
                    return event
                yield event
            if not answer.wait(event, self._standby.deadline.seconds, lambda: cancel.cancelled):
                break
            cancel.raise_if_cancelled()
        cancel.raise_if_cancelled()
        answer.cancel.cancel()
        return (yield from self._continued(replace(request, suggestions=1), screen, cancel))

    def _continued(
        self, request: CompletionRequest, screen: Screen, cancel: CancelToken
    ) -> Generator[CompletionEvent, None, CompletionEvent]:
        """Yield the local model's events after the text on the screen; return the last one."""
        shown = screen.suggestion or Suggestion("")
        prefix, suffix = request.prefix + shown.text, request.suffix[shown.replace_after :]
        names = () if shown.text else request.names  # those known at the cursor, not after the text
        below = replace(request, prefix=prefix, suffix=suffix, names=names, next_line=False)
        for event in self._local.complete(below, cancel):
            longer = tuple(joined(shown, each) for each in event.suggestions) or ((shown,) if shown.text else ())
            event = replace(event, suggestions=longer, dropped="" if longer else event.dropped)  # noqa: PLW2901
            screen.show(longer[0] if longer else None)
            if event.done:
                return event
            yield replace(event, whole=0)
        raise AssertionError("the last event of an engine has `done`")

    def _with_alternatives(
        self, first: Suggestion | None, request: CompletionRequest, cancel: CancelToken
    ) -> Generator[CompletionEvent]:
        """Yield a suggestion of the server, with those of the local model as alternatives."""
        for event in self._local.complete(request, cancel):
            if first is None:
                yield event
                continue
            complete = event.suggestions if event.done else event.suggestions[: event.whole]
            others = [each for each in complete if each.text != first.text][: request.suggestions - 1]
            if event.done or others:
                chosen = (first, *others)
                yield replace(event, suggestions=chosen, whole=len(chosen), dropped="")


def _with_second(last: CompletionEvent, answer: Answer, most: int) -> CompletionEvent:
    """Return the local model's last event with a complete text of the server as second suggestion, if there is room."""
    found = answer.suggestion if answer.is_complete else None
    if found is None or most < 2 or not last.suggestions or any(each.text == found.text for each in last.suggestions):
        return last
    first, *others = last.suggestions
    suggestions = (first, found, *others)[:most]
    return replace(last, suggestions=suggestions, whole=len(suggestions))
