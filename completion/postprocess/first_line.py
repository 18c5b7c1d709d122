"""In line mode a suggestion ends where its line ends."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess.context import Context
from completion.request import Mode, Suggestion


def first_line(suggestion: Suggestion, context: Context) -> Suggestion:
    """Cut at the first line break in line mode; block mode is left as it is."""
    if context.mode is not Mode.LINE:
        return suggestion
    line = suggestion.text.partition("\n")[0]
    return replace(suggestion, text=line.removesuffix("\r"))
