"""Short texts that complete code which is still being written: what closes it, and what must follow it.

A text that is right so far may leave something open: a bracket, a JSX element, a `try` without its handler, a decorator
without its function. Alone, it is a syntax error in the document. Together with one of these texts it is none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from completion.closing.continuations import ANY, continuations, missing_operands
from completion.closing.jsx_tags import open_tags
from completion.closing.python_endings import python_endings
from completion.ending.context import Context, closes_string
from completion.syntax.brackets import SCAN_AFTER, Bracket, Scan, scan
from completion.syntax.lexer import CLOSER_OF
from completion.syntax.lexicon import string_ended_by

_WITH_TAGS = frozenset({"javascript", "javascriptreact", "typescriptreact"})
_WITH_TRY = frozenset({*_WITH_TAGS, "typescript", "java", "cpp"})
_WITH_DO = _WITH_TRY | {"c"}
_BLOCK_WORD = re.compile(r"\b(try|do)\s*\Z")
_WITH_HEADS = _WITH_DO | {"typescriptreact"}
_HEAD = re.compile(r"\b(?:if|for|while|switch|catch|synchronized)\s*\(")  # the head of a statement with a body
_HEAD_WORD = re.compile(_HEAD.pattern.removesuffix(r"\(") + r"\Z")
_HEAD_CHARACTERS = 40  # before a bracket, among which the keyword of its block is
_COMMENT_END = "*/"
_MAX_OWN_CLOSERS = 5  # of what a line opens itself; what is around it can be thousands of brackets
_LINE_ENDS = frozenset(")]}\"'`")
_CLOSER_ENDS = _LINE_ENDS | {">"}

_TYPE_ARGUMENTS = re.compile(r"\w<\s*\Z")
_WITH_TYPE_ARGUMENTS = frozenset({"rust", "java", "cpp", "typescript", "typescriptreact"})
_ANGLE = re.compile(r"(?<=[\w:])<(?![<=])|(?<![-=])>")

_ANNOUNCED = {
    "java": ((r"@[\w.]+(\(.*\))?", ("\nclass _{}", "\nvoid _(){}")),),
    "typescript": ((r"@[\w.]+(\(.*\))?", ("\nclass _{}", "\n_(){}")),),
    "cpp": ((r"template\s*<.*>", ("\nclass _;",)),),
    "rust": ((r"#\[.*\]", ("\nfn _(){}", "\nA,", "\na:A,")),),
    "python": ((r"@.+", ("\ndef _(): pass",)),),
}
"""By language, lines that say something of the code below them, and such code: a function, a variant, a field."""
_CONDITION = (r"#\s*if.*", ("\n#endif\n",))
_WITH_CONDITIONS = frozenset({"c", "cpp"})


def endings(text: str, context: Context) -> tuple[str, ...]:
    """Return texts of which one completes the document after `text`, if that is right so far; the likeliest first.

    In a manual request it must be complete but for what the user has left open.
    """
    if context.language == "python":
        return python_endings(text, context, still_to_close(text, context))
    ways = [still_to_close(text, context, with_tags=True)] if context.language in _WITH_TAGS else []
    line = "" if context.invoked else _last_line(text, context)
    if _open_angles(line, context.language):
        ways.append(still_to_close(text, context, with_angles=True))
    if context.language in _WITH_HEADS and _HEAD.search(line):
        ways.append(still_to_close(text, context, with_bodies=True))
    ways.append(still_to_close(text, context))
    known = [closers for closers in ways if closers is not None]
    found = [each for closers in known for each in _closing_only(closers, text, context)]
    if not context.invoked:
        found += [each for closers in known for each in _going_on(closers, text, context)]
    return tuple(dict.fromkeys(found))


def with_open_line(context: Context) -> Context:
    """Return a context in which the closers after the cursor on its line are left to the endings.

    An editor adds them as soon as their opener is typed, where the line mostly goes on: `def f(‸)` lacks its colon and
    its body. So does `def f(` with the closers on the next line. In a string whose end is not typed yet, they are text.
    The context stays as it is if other text follows the cursor, or closers of something else.
    """
    rest, below = closers_after(context), context.following[0].strip() if context.following else ""
    is_below = below.startswith(")") and _LINE_ENDS.issuperset(below)
    rest += below if is_below else ""
    if not rest or not _LINE_ENDS.issuperset(rest):
        return context
    opened = context.without_rest_of_line(and_next=is_below)
    closers = still_to_close("", opened) or ""
    outside = closers.lstrip("}") if context.before.string else closers  # not every editor closes braces in strings
    return opened if are_text(rest, context) or closers.startswith(rest) or outside.startswith(rest) else context


def closers_after(context: Context, replaced: int = 0) -> str:
    """Return what follows the cursor on its line and the replaced characters, without the colon of Python's heads."""
    rest = context.line_after[replaced:].strip()
    return rest.removesuffix(":") if context.language == "python" else rest


def are_text(closers: str, context: Context) -> bool:
    """Return whether closers after the cursor are text of the string around it, which they do not end."""
    return bool(context.before.string) and context.before.string not in closers


def _closing_only(closers: str, text: str, context: Context) -> Iterator[str]:
    """Yield the texts that complete the document by these closers, after at most one more name."""
    if context.invoked and not closers:
        return
    for each in _closed(closers, text, context):
        if each:
            yield each
        if each.strip(";"):
            yield ANY + each


def _going_on(closers: str, text: str, context: Context) -> Iterator[str]:
    """Yield the texts that first go on with the line. What the line opens itself may be closed before that."""
    operands = missing_operands(context.language)
    texts = (*continuations(context.language), *operands)
    first = len(_COMMENT_END) if closers.startswith(_COMMENT_END) else 0  # code begins after the comment
    ends = [end for end in range(first + 1, len(closers) + 1) if closers[end - 1] in _CLOSER_ENDS]
    starts = [(closers[:end], closers[end:]) for end in (first, *ends[:_MAX_OWN_CLOSERS])]
    yield from (own + each + others for own, others in starts for each in texts)
    yield from (operand + each for each in _closed(closers, text, context) for operand in operands)
    yield from (f"{own}{operand}{others};" for own, others in starts for operand in operands)


def _closed(closers: str, text: str, context: Context) -> Iterator[str]:
    """Yield the closers with what else may be missing at the end of a statement."""
    if not context.invoked:
        if closers.startswith("}") and (context.line_before + text).startswith(("import ", "export ")):
            yield f"{closers}from''"
        if _TYPE_ARGUMENTS.search(text):
            yield f"{ANY}>{closers}"
    yield closers
    if context.language != "json":
        yield f"{closers};"
    if not context.invoked:
        yield f"{closers},"  # above other items
    block = closers.find("}")
    if block >= 0:
        yield f"{closers[:block]};{closers[block:]}"  # the end of the statement in the block
    if not context.invoked:
        if block >= 0:
            yield f"{closers[: block + 1]};{closers[block + 1 :]}"  # the block ends an expression
            yield f"{closers[:block]};{closers[block:]};"  # the block is within one
        if not context.line_after.strip():
            yield from announced(text, context)
        yield f"{closers}{{}}"  # the head of a block


def still_to_close(
    text: str, context: Context, *, with_tags: bool = False, with_angles: bool = False, with_bodies: bool = False
) -> str | None:
    """Return what closes, after `text`, the brackets, the string and the comment that are being typed.

    These are open at the cursor, and neither the text after the cursor nor `text` closes them. The brackets that `text`
    opens are closed, too; with `with_tags`, also JSX elements, with `with_angles`, type arguments of the last line, and
    with `with_bodies`, an empty body after the parentheses of a head such as `for (`. The result is "" if nothing is
    open, and None if closers at the end of `text` do not help: it has a closer too many, or ends within a string of its
    own. A string or comment of several lines may stay open if the user did not ask for the suggestion.
    """
    if closes_string(context.before, context.suffix, context.language):
        return ""
    comment, rest = _after_comment(text, context)
    found = context.scan(rest)
    in_own_comment = found.comment and scan(rest + "\n", context.language).comment
    opened = None if _ends_badly(found, context, in_own_comment=in_own_comment) else _still_open(found, context)
    if opened is None:
        return None
    near = context.near + rest
    open_ = [(opener.offset, _closing(opener, near, context.language, with_bodies=with_bodies)) for opener in opened]
    open_ += open_tags(near, context.suffix[:SCAN_AFTER]) if with_tags else ()
    if with_angles:
        start = near.rfind("\n") + 1
        open_ += [(start + offset, ">") for offset in _open_angles(near[start:], context.language)]
    closers = "".join(closer for _, closer in sorted(open_, reverse=True))
    end = comment or (_COMMENT_END if in_own_comment else "\n" if found.comment else _string_end(rest, found, context))
    return "" if end == "\n" and not closers else end + closers


def _ends_badly(found: Scan, context: Context, *, in_own_comment: bool) -> bool:
    """Return whether a text ends within a string or comment of its own that nothing may end."""
    in_own_string = bool(found.string) and (found.string_end > 0 or not context.before.string)
    if context.invoked:
        return in_own_string or in_own_comment
    return in_own_string and not string_ended_by(found.string, context.language).lines


def _still_open(found: Scan, context: Context) -> list[Bracket] | None:
    """Return the brackets that neither a text at the cursor nor the text after it closes.

    The offsets are from the start of what is scanned before the cursor. None if the text has a closer too many.

    Args:
        found: Scan of the text.
        context: The document around the cursor.
    """
    typed = itertools.takewhile(
        lambda pair: pair[0].closed_at is None, zip(reversed(context.open), reversed(context.before.open), strict=True)
    )
    waiting = [opener for _, opener in typed]
    for closer in found.unopened:
        if not waiting or CLOSER_OF[waiting.pop(0).character] != closer.character:
            return None
    start = len(context.near)
    return [*waiting, *(Bracket(each.character, start + each.offset) for each in found.open)]


def _open_angles(line: str, language: str) -> list[int]:
    """Return the offsets of the angle brackets of type arguments that a line leaves open."""
    waiting: list[int] = []
    for found in _ANGLE.finditer(line) if language in _WITH_TYPE_ARGUMENTS else ():
        if found.group() == "<":
            waiting.append(found.start())
        elif waiting:
            waiting.pop()
    return waiting


def _string_end(text: str, found: Scan, context: Context) -> str:
    """Return what ends the string that a text ends inside, and the braces of an interpolation in it; "" for none."""
    begun = "" if found.string_end or not context.before.string else context.near
    start = context.before.string_start if begun else found.string_start
    content = (begun + text)[start + len(found.string) :] if found.string else ""
    return "}" * sum(bracket.character == "{" for bracket in scan(content, "").open) + found.string


def _closing(opener: Bracket, text: str, language: str, *, with_bodies: bool) -> str:
    """Return what closes an opener in `text`, with what must follow its block."""
    head = text[max(0, opener.offset - _HEAD_CHARACTERS) : opener.offset]
    if with_bodies and opener.character == "(" and _HEAD_WORD.search(head):
        return "){}"
    closer = CLOSER_OF[opener.character] + (">" if _TYPE_ARGUMENTS.search(head) else "")
    word = _BLOCK_WORD.search(head)
    if opener.character != "{" or word is None:
        return closer
    if word.group(1) == "do":
        return closer + ("while(0);" if language in _WITH_DO else "")
    handler = "catch(...){}" if language == "cpp" else "finally{}"
    return closer + (handler if language in _WITH_TRY else "")


def announced(text: str, context: Context, replaced: int = 0) -> tuple[str, ...]:
    """Return texts of which one completes the document in place of the rest of the cursor's line.

    They end the last line of `text`, if it announces the code below it, and begin that code.

    Args:
        text: Text at the cursor.
        context: The document around the cursor.
        replaced: Number of characters after the cursor that the text replaces.
    """
    kinds = [*_ANNOUNCED.get(context.language.removesuffix("react"), ())]
    if context.language in _WITH_CONDITIONS and not context.invoked:  # a manual request closes what it opens
        kinds.append(_CONDITION)
    closers, rest = still_to_close(text, context) or "", context.line_after[replaced:].rstrip()
    found: list[str] = []
    for count in range(len(closers) + 1):  # those of the line itself, then those of what is around it
        own = closers[:count] + rest
        line = _last_line(text + own, context)
        below = next((each for pattern, each in kinds if re.fullmatch(pattern, line)), ())
        found += (own + _indented(each, text, context) + closers[count:] for each in below)
    return tuple(found)


def _indented(below: str, text: str, context: Context) -> str:
    """Return the code below the last line, in Python with the indentation of that line."""
    if context.language != "python":
        return below
    line = (context.line_before + text).rpartition("\n")[2]
    return below.replace("\n", "\n" + line[: len(line) - len(line.lstrip())])


def _last_line(text: str, context: Context) -> str:
    return (context.line_before + text).rpartition("\n")[2].strip()


def _after_comment(text: str, context: Context) -> tuple[str, str]:
    """Return what ends the comment around the cursor after `text`, "" if `text` ends it, and `text` after it."""
    if not context.before.comment:
        return "", text
    is_block = scan(context.near + "\n", context.language).comment
    end = _COMMENT_END if is_block else "\n"
    _, found, rest = text.partition(end)
    return "" if found else end, rest
