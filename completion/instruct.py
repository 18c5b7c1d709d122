"""Requests that instruct the model: its turn in a conversation, and edits of code. Imports no model."""

from __future__ import annotations

import re
from collections.abc import Iterable

from completion.language_ids import known_language, rows
from completion.request import MAX_TOKENS_LIMIT, CacheMode, CompletionRequest, GrammarMode, Message, Mode, Sampling

_GREEDY = Sampling()
_EDITOR = (
    "You edit source code. Apply the instruction to the code, keep everything else as it is, and answer with the whole "
    "edited code only."
)
_TILDES = re.compile(r"~{3,}")


def instruct_request(
    messages: Iterable[Message],
    *,
    start: str = "",
    last_line: str = "",
    max_tokens: int = MAX_TOKENS_LIMIT,
    sampling: Sampling = _GREEDY,
) -> CompletionRequest:
    """Return the request for the model's turn after a conversation, up to the token that ends a turn.

    Args:
        messages: The conversation.
        start: Text that the turn starts with, which the reply leaves out.
        last_line: Start of the line with which the turn ends; "" to go on to the model's own end.
        max_tokens: Maximum number of generated tokens. The cache's capacity bounds them, too.
        sampling: Parameters of drawing a token.
    """
    return CompletionRequest(
        start,
        messages=tuple(messages),
        last_line=last_line,
        outline=False,
        mode=Mode.BLOCK,
        max_tokens=max_tokens,
        max_bytes=1 << 20,
        sampling=sampling,
        cache=CacheMode.EXACT,
        grammar=GrammarMode.OFF,
        healing=False,
        filters=False,
    )


def edit_request(code: str, instruction: str, language: str) -> CompletionRequest:
    """Return the request for an edited code. The reply is the code and a closing fence; see `edited_code`."""
    fence = fence_of(code, language)
    asked = f"{fence}{language}\n{code}\n{fence}\n\nInstruction: {instruction}"
    talk = Message("system", _EDITOR), Message("user", asked)
    return instruct_request(talk, start=f"{fence}{language}\n", last_line=fence)


def fence_of(code: str, language: str) -> str:
    """Return a fence that the edited code will hardly contain: three backquotes, or tildes where it has code blocks.

    Around a code block, models close a longer run of backquotes with three, or take those of the block for the end.
    """
    if "```" not in code and not rows().get(known_language(language), {}).get("code_blocks"):
        return "```"
    return "~" * max((len(run) + 1 for run in _TILDES.findall(code)), default=3)


def edited_code(reply: str, fence: str) -> tuple[str, bool]:
    """Return the code in the reply to an `edit_request` so far, and whether it is complete.

    The last line of an incomplete code is left out while it may be the closing fence.
    """
    code, found, _ = f"\n{reply}".partition(f"\n{fence}")
    if not found:
        lines, line_break, last = code.rpartition("\n")
        code = lines if fence.startswith(last) else lines + line_break + last
    return code[1:], bool(found)
