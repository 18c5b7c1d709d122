"""Short texts that complete Python code which is still being written; see `completion.closing.endings`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from completion.closing.continuations import ANY, continuations, missing_operands
from completion.ending.context import Context
from completion.syntax.indent_style import depth

_INDENT = re.compile(r"[ \t]*")
_TRY = re.compile(r"[ \t]*try[ \t]*:")
_HANDLER = re.compile(r"[ \t]*(?:except|finally)\b")
_DEFINITION = re.compile(r"[ \t]*(?:async[ \t]+)?def\b")
_MATCH = re.compile(r"[ \t]*match\b")


def python_endings(text: str, context: Context, closers: str | None) -> tuple[str, ...]:
    """Return texts of which one completes the document after `text`, if that is right so far; the likeliest first.

    Args:
        text: Text at the cursor.
        context: The document around the cursor.
        closers: What closes the brackets, the string and the comment that are open after the text; None if nothing
            does.
    """
    if closers is None:
        return ()
    lines = (context.near + text).split("\n")
    line = lines[-1]
    indent = _INDENT.match(line).group()  # type: ignore[union-attr]
    inner = indent + (context.indent.unit or "    ")
    is_head = not closers and _opens_block(text, context)
    handlers = "".join(f"\n{one}except: pass" for one in _unhandled(lines, context.following, is_head=is_head))
    body = f"\n{inner}pass{handlers}"
    if is_head:
        below = f"\n{inner}case _: pass{handlers}" if _MATCH.match(line) else body
        annotations = (f"{each}{handlers}" for each in (" _", " _,", " _=_"))
        return (below,) if context.invoked else (below, *annotations)
    found = [closers + handlers, f" _{closers}{handlers}"] if closers else [handlers] if handlers else []
    if not context.invoked:
        operands = missing_operands(context.language)
        if line.startswith("@", len(indent)):
            found += [f"{name}{closers}\n{indent}def _(): pass{handlers}" for name in ("", ANY)]
        elif _DEFINITION.match(line):
            found += [f"{parameters}{closers}:{body}" for parameters in ("", ANY, "()", f"{ANY}()")]
        else:
            found += [f"{name}{closers}:{body}" for name in ("", ANY)]
        found += [f"{each}{closers}{handlers}" for each in (*continuations(context.language), *operands)]
        found += [f"{operand}{closers}:{body}" for operand in operands]
        found += [f"{name}{closers},{handlers}" for name in ("", ANY)]  # above other items
        found += _with_value(closers, handlers, body)
    return tuple(dict.fromkeys(found))


def _with_value(closers: str, handlers: str, body: str) -> Iterator[str]:
    """Yield endings with the value of a parameter, argument or key before the bracket that ends it.

    After others that have one, `retries: int` and `"name"` alone are errors.
    """
    for begin, bracket in (("=", ")"), (":", "}")):
        inner, is_open, outer = closers.partition(bracket)
        closed = f"{bracket}{outer}"
        ends = (f"{closed}{handlers}", f"{closed}:{body}") if is_open else (handlers, f",{handlers}")
        yield from (f"{operand}{inner}{begin}_{end}" for operand in ("", " _") for end in ends)


def _opens_block(text: str, context: Context) -> bool:
    found = context.scan(text)
    return text.rstrip().endswith(":") and not (found.open or found.string or found.comment)


def _unhandled(lines: Sequence[str], following: Sequence[str], *, is_head: bool) -> Iterator[str]:
    """Yield the indentation of each `try` around the last line that has no handler yet, innermost first."""
    level = depth(lines[-1]) + is_head
    for line in reversed(lines):
        if line.strip() and depth(line) < level:
            level = depth(line)
            below = next((one for one in following if one.strip() and depth(one) <= level), "")
            if _TRY.match(line) and not (depth(below) == level and _HANDLER.match(below)):
                yield _INDENT.match(line).group()  # type: ignore[union-attr]
