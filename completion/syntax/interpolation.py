"""Follows strings with code in them on the cursor's line, whose code has strings of its own: `"$(cat "$file")"`."""

from __future__ import annotations

from collections.abc import Sequence

from completion.syntax.brackets import CLOSER_OF

_BEGINS = {
    **dict.fromkeys(["ruby", "crystal", "elixir"], ("#{",)),
    **dict.fromkeys(["kotlin", "groovy", "dart"], ("${",)),
    "shellscript": ("$(", "${"),
    "julia": ("$(",),
    "swift": ("\\(",),
}
"""By language, what begins code in a string; in a backslash's case, it is no escape."""
_QUOTES = frozenset("\"'")


def waiting_closers(line: str, language: str) -> tuple[str, ...]:
    """Return what closes the strings and brackets around the end of a line, innermost last; () outside such code."""
    begins = _BEGINS.get(language, ())
    if not any(begin in line for begin in begins):
        return ()
    waiting, _ = _follow(line, (), begins)
    return tuple(waiting) if any(closer in _QUOTES for closer in waiting[:-1]) else ()


def closed_by(text: str, waiting: Sequence[str], language: str) -> str:
    """Return which of the waiting closers a text has, innermost first, without those of what it opens again."""
    after, left = _follow(text, waiting, _BEGINS[language])
    return "".join(reversed(waiting[left:])).removesuffix("".join(reversed(after[left:])))


def _follow(text: str, waiting: Sequence[str], begins: Sequence[str]) -> tuple[list[str], int]:
    """Return what is waiting after a text, and how many of the first ones were waiting all the time."""
    stack, least, position = list(waiting), len(waiting), 0
    while position < len(text):
        character, inside = text[position], stack[-1] if stack else ""
        begin = next((each for each in begins if text.startswith(each, position)), "")
        if inside in _QUOTES and inside != "'" and begin:
            stack.append(CLOSER_OF[begin[-1]])
            position += len(begin)
            continue
        if character == "\\":
            position += 2
            continue
        if character == inside:
            stack.pop()
        elif inside not in _QUOTES and (character in _QUOTES or character in CLOSER_OF):
            stack.append(CLOSER_OF.get(character, character))
        least = min(least, len(stack))
        position += 1
    return stack, least
