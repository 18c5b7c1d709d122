"""Line ends: the model gets plain line feeds, and suggestions get the document's own line ends."""

from __future__ import annotations

import re
from dataclasses import replace

from completion.request import CompletionRequest, Suggestion

_LINE_END = re.compile(r"\r?\n")


def normalised(request: CompletionRequest) -> CompletionRequest:
    """Return the request with plain line feeds and without lone surrogates, which tokenizers reject."""
    prefix, suffix, history = map(_clean, (request.prefix, request.suffix, request.history))
    return replace(request, prefix=prefix, suffix=suffix, history=history)


def restored(suggestion: Suggestion, request: CompletionRequest) -> Suggestion:
    """Return the suggestion with the line ends of the document in `request`."""
    text = suggestion.text
    if "\n" not in text or not _has_crlf(request):
        return suggestion
    ends = tuple(
        (end + text.count("\n", 0, end) - text.count("\r\n", 0, end), log_probability)
        for end, log_probability in suggestion.ends
        if text[end - 1 : end + 1] != "\r\n"  # no end lies inside a line end
    )
    pieces = tuple((drafter, _with_crlf(piece)) for drafter, piece in suggestion.pieces)
    line = len(_with_crlf(text[: suggestion.line]))
    return replace(suggestion, text=_with_crlf(text), ends=ends, pieces=pieces, line=line)


def _has_crlf(request: CompletionRequest) -> bool:
    """Return whether the last line end before the cursor, or else the first after it, is CRLF."""
    before = request.prefix.rfind("\n")
    if before >= 0:
        return request.prefix[before - 1 : before] == "\r"
    after = request.suffix.find("\n")
    return after > 0 and request.suffix[after - 1] == "\r"


def _with_crlf(text: str) -> str:
    return _LINE_END.sub("\r\n", text)


def _clean(text: str) -> str:
    text = text.replace("\r\n", "\n")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
