"""Reads prompts in which a client has written a model family's own markers between the parts of a document.

The engine lays out the parts anew, so the completion is that of `/v1/complete` at the same cursor, whatever the order
of the parts was. Only the addresses that call this module read markers. In every other text they are characters.
"""

from __future__ import annotations

from dataclasses import dataclass

from completion.language_ids import language_of
from completion.prompt.fim_format import FORMATS, FimFormat
from completion.request import CompletionRequest, ContextFile, Layout, Sampling

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


@dataclass(frozen=True, slots=True)
class PromptParts:
    """The parts of a prompt.

    Attributes:
        prefix: Text before the cursor.
        suffix: Text after the cursor; None if the prompt only continues.
        context: Parts of other files, in the client's order.
        path: Path of the document, "" if unknown.
        repository: Name of the repository, "" if unknown.
    """

    prefix: str
    suffix: str | None = None
    context: tuple[ContextFile, ...] = ()
    path: str = ""
    repository: str = ""


def prompt_parts(prompt: str) -> PromptParts:
    """Return the parts of a prompt; one without a family's markers in a known order is a prefix as a whole.

    Known orders: prefix, suffix; suffix, prefix; "SPM variant 2" of "Efficient Training of Language Models to Fill in
    the Middle", section 3; each of them after a header of a repository's name and files; such a header alone.
    """
    text = prompt.lstrip()
    for family in _FAMILIES:
        parts = _parts_of(text.removeprefix(family.begin), family)
        if parts is not None:
            return parts
    return PromptParts(prompt)


def request_of(
    parts: PromptParts, *, max_tokens: int, suggestions: int = 1, sampling: Sampling | None = None
) -> CompletionRequest:
    """Return the request for the text at the cursor between the parts, as draftline's own clients would make it."""
    return CompletionRequest(
        prefix=parts.prefix,
        suffix=parts.suffix or "",
        language=language_of(parts.path.strip()),
        path=parts.path,
        repository=parts.repository,
        context=parts.context,
        layout=Layout.PREFIX_ONLY if parts.suffix is None else None,
        suggestions=suggestions,
        max_tokens=max_tokens,
        sampling=sampling or Sampling(),
    )


def _parts_of(text: str, family: FimFormat) -> PromptParts | None:
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


def _with_header(header: str, family: FimFormat, prefix: str, suffix: str | None) -> PromptParts:
    """Return the parts with those of the header: "REPOSITORY name, SEPARATOR path, text, ..., SEPARATOR path"."""
    separator = family.file_separator
    first, found, rest = header.partition(separator) if separator else (header, "", "")
    files = rest.rsplit(separator, _MAX_FILES)[-_MAX_FILES:] if found else []
    repository = first.removeprefix(family.repository).strip()[-_MAX_NAME:]
    if not files:
        return PromptParts(prefix, suffix, repository=repository)
    *others, own = files
    path, _, above = own.partition("\n")
    context = tuple(_context_file(other) for other in others if other.strip())
    return PromptParts(above + prefix, suffix, context, path[-_MAX_NAME:], repository)


def _context_file(text: str) -> ContextFile:
    path, _, body = text.removesuffix("\n").partition("\n")
    return ContextFile(path, body)
