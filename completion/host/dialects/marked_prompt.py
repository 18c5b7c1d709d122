"""Reads prompts in which a client has written a model family's own markers between the parts of a document.

The engine lays out the parts anew, so the completion is that of `/v1/complete` at the same cursor, whatever the order
of the parts was. Only the addresses that call this module read markers. In every other text they are characters.
"""

from __future__ import annotations

from completion.language_ids import language_of
from completion.prompt.fim_format import FORMATS, FimFormat
from completion.request import CompletionRequest, ContextFile, Layout

_FAMILIES = (
    *(fim_format for fim_format in FORMATS if fim_format.name != "CodeLlama"),
    # In text CodeLlama's markers have no ▁ and stand between spaces: "<PRE> prefix <SUF>suffix <MID>".
    FimFormat("CodeLlama", "<PRE>", "<SUF>", "<MID>"),
    FimFormat("GLM", "<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
)
"""Families whose markers are read, whatever the model is: clients write those of the model that they are set to."""
_MAX_FILES = 1_000
"""Maximum number of files of a header; the last are kept. A hostile prompt could have a million."""
_MAX_NAME = 1_000
"""Maximum length of a path and of a repository's name in characters, of which the end is kept."""


def marked_request(prompt: str) -> CompletionRequest:
    """Return the request for the text at the cursor in a prompt, as draftline's own clients would make it.

    A prompt without a family's markers in a known order is a prefix as a whole. One without a suffix only continues.

    Known orders: prefix, suffix; suffix, prefix; "SPM variant 2" of "Efficient Training of Language Models to Fill in
    the Middle", section 3; each of them after a header of a repository's name and files; such a header alone.
    """
    text = prompt.lstrip()
    for family in _FAMILIES:
        request = _request_of(text.removeprefix(family.begin), family)
        if request is not None:
            return request
    return CompletionRequest(prompt, layout=Layout.PREFIX_ONLY)


def _request_of(text: str, family: FimFormat) -> CompletionRequest | None:
    header_markers = tuple(marker for marker in (family.repository, family.file_separator) if marker)
    if not text.startswith((*header_markers, family.prefix, family.suffix)):
        return None
    starts = [at for at in (text.find(family.prefix), text.find(family.suffix)) if at >= 0]
    at = min(starts, default=len(text))
    middle = _prefix_and_suffix(text[at:], family) if starts else ("", None)
    return None if middle is None else _with_header(text[:at], family, *middle)


def _prefix_and_suffix(text: str, family: FimFormat) -> tuple[str, str] | None:
    """Return the prefix and the suffix of a text that starts with one of the two markers, None in an unknown order."""
    both = family.prefix + family.suffix
    if family.middle and text.startswith(both):
        suffix, found, prefix = text[len(both) :].partition(family.middle)
    else:
        text = text.rstrip() if family.middle else text
        if not text.endswith(family.middle):
            return None
        inside = text[: len(text) - len(family.middle)]
        if inside.startswith(family.prefix):
            prefix, found, suffix = inside[len(family.prefix) :].rpartition(family.suffix)
        else:
            suffix, found, prefix = inside[len(family.suffix) :].partition(family.prefix)
    if not found:
        return None
    if family.name == "CodeLlama":
        return prefix.removeprefix(" ").removesuffix(" "), suffix.removesuffix(" ")
    return prefix, suffix


def _with_header(header: str, family: FimFormat, prefix: str, suffix: str | None) -> CompletionRequest:
    """Return a request with the parts of the header: "REPOSITORY name, SEPARATOR path, text, ..., SEPARATOR path"."""
    separator = family.file_separator
    first, found, rest = header.partition(separator) if separator else (header, "", "")
    files = rest.rsplit(separator, _MAX_FILES)[-_MAX_FILES:] if found else []
    repository = first.removeprefix(family.repository).strip()[-_MAX_NAME:]
    *others, own = files or [""]
    path, _, above = own.partition("\n")
    return CompletionRequest(
        prefix=above + prefix,
        suffix=suffix or "",
        language=language_of(path[-_MAX_NAME:].strip()),
        path=path[-_MAX_NAME:],
        repository=repository,
        context=tuple(_context_file(other) for other in others if other.strip()),
        layout=Layout.PREFIX_ONLY if suffix is None else None,
    )


def _context_file(text: str) -> ContextFile:
    path, _, body = text.removesuffix("\n").partition("\n")
    return ContextFile(path, body)
