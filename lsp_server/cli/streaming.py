"""Prints a completion in the terminal while it is generated, between dimmed lines of the surrounding code."""

from __future__ import annotations

import io
import time
from contextlib import aclosing
from dataclasses import dataclass

from rich.console import Console
from rich.segment import Segment, Segments
from rich.text import Text

from completion.errors import EngineUnavailableError
from completion.request import CompletionEvent, CompletionRequest, Suggestion
from lsp_server.documents.text_lines import split_lines
from lsp_server.engine.client import EngineClient

_CONTROLS = dict.fromkeys(code for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n")
"""Control characters of a file, which could set the terminal's title or clipboard, as a table of `translate`."""
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
    """Send a request, print the text of its first suggestion, and return it.

    A terminal shows the text as it grows, on a new line if another one takes its place. Other files get the last text.

    Raises:
        DraftlineError: No engine is available, it ended before the completion was done, or the request failed.
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
            if console.is_terminal and text != printed:
                grown = text[len(printed) :] if text.startswith(printed) else f"\n{text}"
                _print_code(console, grown, MODEL_STYLE)
                printed = text
    if not last.done:
        raise EngineUnavailableError("The engine ended before the completion was done. Try again.")
    shown = ShownCompletion(last, first_text_ms, _since(started))
    if not console.is_terminal:
        write_code(console, shown.suggestion.text)
    return shown


def print_before(console: Console, before: str, lines: int) -> None:
    """Print the last lines before the cursor dimmed, without a final line break."""
    _print_code(console, "".join(split_lines(before)[-lines:]), "dim")


def print_after(console: Console, after: str, lines: int) -> None:
    """Print the first lines after the cursor dimmed."""
    _print_code(console, "".join(split_lines(after)[:lines]).rstrip("\r\n"), "dim")
    console.print()


def write_code(console: Console, code: str) -> None:
    """Write a code to a console's file as it is: in UTF-8, as files are read, and with its own line ends."""
    if isinstance(console.file, io.TextIOWrapper):
        console.file.reconfigure(encoding="utf-8", newline="")
    console.file.write(code)


def coloured_pieces(suggestion: Suggestion) -> tuple[Text, Text]:
    """Return the suggestion with each piece in the colour of its drafter, and the legend of the colours."""
    drafters = list(dict.fromkeys(name for name, _ in suggestion.pieces if name != "model"))
    styles = {"model": MODEL_STYLE} | dict(zip(drafters, DRAFTER_STYLES, strict=False))
    text, legend = Text(), Text()
    for name, piece in suggestion.pieces:
        text.append(piece.translate(_CONTROLS), style=styles.get(name, "bold"))
    for name, style in styles.items():
        legend.append(f"■ {name}  ", style=style)
    return text, legend


def _print_code(console: Console, code: str, style: str) -> None:
    """Print a code with its tabs, which a `Text` would replace by spaces."""
    segment = Segment(code.translate(_CONTROLS), console.get_style(style))
    console.print(Segments([segment]), end="", soft_wrap=True)


def _since(started: float) -> float:
    return 1e3 * (time.perf_counter() - started)
