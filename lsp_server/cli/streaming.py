"""Prints a completion in the terminal while it is generated, between dimmed lines of the surrounding code."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from completion.request import CompletionEvent, CompletionRequest, Suggestion
from lsp_server.documents.text_lines import split_lines
from lsp_server.engine.client import EngineClient

DRAFTER_STYLES = ("bold magenta", "bold cyan", "bold yellow", "bold blue", "bold red")
MODEL_STYLE = "bold green"


@dataclass(frozen=True, slots=True)
class ShownCompletion:
    """A finished completion with its times as measured in the terminal.

    Attributes:
        first_text_ms: Milliseconds from the request to the first text; 0 if there was none.
        total_ms: Milliseconds from the request to the end.
    """

    event: CompletionEvent
    first_text_ms: float
    total_ms: float

    @property
    def suggestion(self) -> Suggestion:
        """The first suggestion, or an empty one if there is none."""
        return self.event.suggestions[0] if self.event.suggestions else Suggestion("")


async def stream_completion(client: EngineClient, request: CompletionRequest, console: Console) -> ShownCompletion:
    """Send a request and print the text of its first suggestion as it arrives.

    Raises:
        DraftlineError: No engine is available, or the request failed.
    """
    started = time.perf_counter()
    first_text_ms = 0.0
    printed = ""
    last = CompletionEvent(())
    async with aclosing(client.complete(request)) as events:
        async for event in events:
            last = event
            text = event.suggestions[0].text if event.suggestions else ""
            if text and not first_text_ms:
                first_text_ms = _since(started)
            console.print(Text(text[len(printed) :], style=MODEL_STYLE), end="", soft_wrap=True)
            printed = max(printed, text, key=len)
    return ShownCompletion(last, first_text_ms, _since(started))


def print_before(console: Console, before: str, lines: int) -> None:
    """Print the last lines before the cursor dimmed, without a final line break."""
    console.print(Text("".join(split_lines(before)[-lines:]), style="dim"), end="", soft_wrap=True)


def print_after(console: Console, after: str, lines: int) -> None:
    """Print the first lines after the cursor dimmed."""
    console.print(Text("".join(split_lines(after)[:lines]).rstrip("\r\n"), style="dim"), soft_wrap=True)


def coloured_pieces(suggestion: Suggestion) -> tuple[Text, Text]:
    """Return the suggestion with each piece in the colour of its drafter, and the legend of the colours."""
    drafters = list(dict.fromkeys(name for name, _ in suggestion.pieces if name != "model"))
    styles = {"model": MODEL_STYLE} | dict(zip(drafters, DRAFTER_STYLES, strict=False))
    text, legend = Text(), Text()
    for name, piece in suggestion.pieces:
        text.append(piece, style=styles.get(name, "bold"))
    for name, style in styles.items():
        legend.append(f"■ {name}  ", style=style)
    return text, legend


def _since(started: float) -> float:
    return 1e3 * (time.perf_counter() - started)
