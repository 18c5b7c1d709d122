"""What a line is for the lines around it: it announces what follows, or it opens, continues or closes a block."""

from __future__ import annotations

import re

from completion.language_ids import rows
from completion.syntax.brackets import scan
from completion.syntax.table import row_of

_BLOCK_COMMENT = re.compile(r"/\*(?:(?!\*/).)*(?:\*/)?|\*(?:[ \t/].*)?|<!--.*")

_WORDS = rows()["words"]
_MODIFIERS = _WORDS["modifiers"].split()
_HEAD = rf"([ \t]*)(?:(?:{'|'.join(_MODIFIERS)}|pub\(\w+\))[ \t]+)*"
_WITH_MODIFIERS = re.compile(_HEAD)
_DEFINITION = re.compile(rf"{_HEAD}(?:{_WORDS['defining'].replace(' ', '|')})[ \t]+[\w$]")
_BEGUN_MODIFIER = re.compile(r"pub(?:\(\w*\)?)?")

_ELEMENT = re.compile(r"<((?:[A-Za-z][\w.:-]*)?)(?:\s(?:[^<>]|=>)*)?(?<!/)>")

_WORD = re.compile(r"\w*")
_CONTINUING = tuple(_WORDS["continuing"].split())
_ONLY_AFTER = {word: before.split() for word, before in _WORDS["only_after"].items()}

_VALUE = re.compile(r"[^=]*[^\s=!<>][ \t]*=[ \t]*")


def is_decorator(line: str, language: str) -> bool:
    """Return whether a line belongs to the code below it: `@name`, `#[name]`, `[Name]`; of several, the first line."""
    pattern = row_of(language).decorator
    return pattern is not None and pattern.fullmatch(line.strip()) is not None


def announces(line: str, language: str) -> bool:
    """Return whether a line is a decorator or only a comment: it says something of the code below it."""
    text, mark = line.strip(), row_of(language).line_comment
    is_comment = bool(mark) and text.startswith(mark)
    return is_comment or is_decorator(text, language) or _BLOCK_COMMENT.fullmatch(text) is not None


def defines_name(line: str) -> bool:
    """Return whether a line begins a definition, whose name no other one beside it has."""
    return _DEFINITION.match(line) is not None


def without_modifiers(line: str) -> str:
    """Return a line without the words before what it defines, as `pub(crate)` or `export async`."""
    return _WITH_MODIFIERS.sub(r"\1", line, count=1)


def may_be_modifiers(line: str) -> bool:
    """Return whether an unfinished line can still have only such words."""
    last = without_modifiers(line).strip()
    return any(word.startswith(last) for word in _MODIFIERS) or _BEGUN_MODIFIER.fullmatch(last) is not None


def opens_words(line: str, language: str, *, ended: bool = False) -> bool:
    """Return whether a line begins, with words, what lines below it end: `if x; then`, `def f`.

    It may still be typed; `ended` asks whether nothing else may belong to it.
    """
    head, ending = row_of(language).opening, row_of(language).opening_end
    text = _without_comment(line, language).strip()
    if head is None or ending is None or head.fullmatch(text) is None:
        return False
    return not ended or ending.search(text) is not None


def opens_lines(line: str, language: str) -> bool:
    """Return whether a line begins, with words or a tag, what lines below it end."""
    return _ELEMENT.fullmatch(line.strip()) is not None or opens_words(line, language)


def opens_body(line: str, language: str) -> bool:
    """Return whether a whole line opens a block: with a colon after a clause, a brace, words or a tag."""
    head, clauses = line.rstrip(), row_of(language).clauses
    if not clauses:
        return head.endswith("{") or opens_lines(head, language)
    found = scan(head, language)
    in_code = not (found.open or found.string or found.comment)
    return in_code and head.endswith(":") and _first_word(head) in clauses


def opens_alike(line: str, head: str, language: str) -> bool:
    """Return whether a line opens the same as `head`: an element or environment of its name, or anything with words."""
    closer = _closer(head, language)
    return closer == _closer(line, language) and (bool(closer) or opens_words(line, language))


def continues_block(line: str, head: str, language: str) -> bool:
    """Return whether a line goes on with what the line `head` above it begins, at the same indentation."""
    if announces(head, language) or line.lstrip().startswith("{"):
        return True
    if row_of(language).items and is_item(line):
        return head.rstrip().endswith(":")
    word = _first_word(line)
    assigned = _VALUE.match(head) if row_of(language).values else None
    first = _first_word(head[assigned.end() :] if assigned else head)
    return word in _continuing(language) and first in _ONLY_AFTER.get(word, (first,))


def closes_block(line: str, head: str, language: str) -> bool:
    """Return whether a line closes, with a word or a tag, what the line `head` above it begins."""
    if closer := _closer(head, language):
        return line.lstrip().startswith(closer)
    return _first_word(line) in row_of(language).closing


def _closer(head: str, language: str) -> str:
    """Return what closes the element or environment that a line opens; "" if it opens none."""
    if element := _ELEMENT.fullmatch(head.strip()):
        return f"</{element.group(1)}>"
    begins = row_of(language).environment
    environment = begins.match(head.strip()) if begins is not None else None
    return f"\\end{environment.group(1)}" if environment else ""


def may_stay_in_block(line: str, language: str) -> bool:
    """Return whether an unfinished line can still become one that continues or closes a block."""
    text = line.lstrip()
    words = (*_continuing(language), *row_of(language).closing, "</", "\\end{")
    return text.startswith(("</", "\\end{")) or any(word.startswith(text) for word in words)


def is_clause(line: str, language: str) -> bool:
    """Return whether a line goes on with a statement above it: `else`, `rescue`, also after the closer of its block."""
    word = _first_word(line.lstrip().removeprefix("}"))
    return word in _continuing(language) and word not in _ONLY_AFTER


def is_item(line: str) -> bool:
    """Return whether a line begins an item of a list in YAML or Markdown."""
    return line.lstrip().startswith("- ")


def is_preprocessed(line: str, language: str) -> bool:
    """Return whether a line is one for the preprocessor, whose indentation says nothing."""
    mark = row_of(language).preprocessor
    return bool(mark) and line.lstrip().startswith(mark)


def _continuing(language: str) -> tuple[str, ...]:
    return _CONTINUING + row_of(language).continuing


def _without_comment(line: str, language: str) -> str:
    """Return a line without the comment that it ends with."""
    mark = row_of(language).line_comment
    if not mark or mark not in line:
        return line
    found = scan(line, language)
    return line[: found.string_start] if found.comment else line


def _first_word(line: str) -> str:
    return _WORD.match(line.lstrip()).group()  # type: ignore[union-attr]
