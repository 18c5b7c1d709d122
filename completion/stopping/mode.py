"""One line or a block: decided by the syntax at the cursor."""

from __future__ import annotations

from contextlib import suppress

from completion.errors import ParseLimitError
from completion.postprocess import Context
from completion.request import CompletionRequest, Mode
from completion.syntax.brackets import CLOSERS, scan
from completion.syntax.indent_style import depth
from completion.syntax.parser_process import IN_PROCESS, Parsing
from completion.syntax.trees import ancestors, parse

_LOOK_BEHIND = 12_000
_LOOK_AHEAD = 4_000
_CLOSING = frozenset(")]}\"'`;,: \t")
_BODY = frozenset(
    {
        "module", "program", "source_file", "translation_unit", "block", "statement_block", "class_body",
        "compound_statement", "declaration_list", "field_declaration_list", "interface_body", "object_type",
        "enum_body", "switch_body", "switch_block", "match_block", "constructor_body", "enum_variant_list",
        "enumerator_list", "enum_body_declarations", "annotation_type_body", "class_static_block",
    }
)  # fmt: skip
_EXPRESSION = frozenset(
    {
        "argument_list", "arguments", "parameters", "parameter_list", "formal_parameters", "parenthesized_expression",
        "list", "array", "tuple", "dictionary", "object", "set", "subscript", "binary_expression", "template_string",
        "string", "string_literal", "raw_string_literal", "interpreted_string_literal", "comment", "line_comment",
        "block_comment", "import_statement", "named_imports", "initializer_list", "array_expression", "token_tree",
        "string_content", "string_fragment", "type_arguments", "literal_value", "composite_literal",
    }
)  # fmt: skip
_BEFORE_LITERAL = ("=", "(", ",", ":", "[", "return", "import", "export", "&")
_PYTHON_CLAUSES = frozenset(
    ["def", "class", "if", "elif", "else", "for", "while", "with", "try", "except", "finally", "async", "match", "case"]
)  # what a line before a block's colon begins with


def cursor_context(request: CompletionRequest, parsing: Parsing = IN_PROCESS) -> Context:
    """Return what stop rules and filters see of a request; AUTO becomes a line or a block."""
    mode = request.mode
    if mode is Mode.AUTO:
        mode = decide(request.prefix, request.suffix, request.language, parsing)
    return Context.of(request.prefix, request.suffix, request.language, mode, invoked=request.invoked)


def decide(prefix: str, suffix: str, language: str, parsing: Parsing = IN_PROCESS) -> Mode:
    """LINE or BLOCK for a cursor between `prefix` and `suffix`.

    A block is offered behind a block's opener, and on an empty line where a block ends, to finish it. A line (with its
    body, if it is a block's head) is offered everywhere else: with text after the cursor, inside strings, comments and
    expressions, at the end of a statement, and on an empty line between lines of a block, where one line is missing.
    """
    line_before = prefix[prefix.rfind("\n") + 1 :]
    line_after = suffix.partition("\n")[0]
    if not set(line_after) <= _CLOSING:
        return Mode.LINE
    behind, ahead = prefix[-_LOOK_BEHIND:], suffix[:_LOOK_AHEAD]
    if line_before.strip():
        return Mode.BLOCK if _after_opener(behind, ahead, line_before, language, parsing) else Mode.LINE
    if line_after.strip():
        return Mode.LINE
    if _goes_on(behind, ahead):
        return Mode.LINE
    return Mode.LINE if _in_expression(behind, ahead, language, parsing) else Mode.BLOCK


def _goes_on(behind: str, ahead: str) -> bool:
    """Whether the block that an empty line stands in goes on below it."""
    above, _, blanks = behind.rpartition("\n")
    last = above.rstrip().rpartition("\n")[2]
    below = next((line for line in ahead.split("\n")[1:] if line.strip()), "")
    if not below or below.lstrip()[0] in CLOSERS:
        return False
    return depth(below) >= (depth(blanks + "|") if blanks else depth(last) + last.endswith((":", "{")))


def is_within_expression(behind: str, ahead: str, language: str) -> bool:
    """Whether the innermost body or expression around the cursor is an expression; False without a grammar."""
    tree = parse(behind + ahead, language)
    if tree is None:
        return False
    cursor = len(behind.encode("utf-8", "replace"))
    around = ancestors(tree.root_node.descendant_for_byte_range(cursor, cursor))
    return next((node.type for node in around if node.type in _BODY | _EXPRESSION), "") in _EXPRESSION


def brace_opens_block(behind: str, ahead: str, language: str) -> bool | None:
    """Whether the brace before the cursor opens a block; None where its closer is still to come."""
    tree = parse(behind + ahead, language)
    if tree is None:
        return True
    end = len(behind.rstrip().encode("utf-8", "replace"))
    brace = tree.root_node.descendant_for_byte_range(end - 1, end)
    parent = brace.parent if brace is not None else None
    return None if parent is None or parent.type == "ERROR" else parent.type not in _EXPRESSION


def _in_expression(behind: str, ahead: str, language: str, parsing: Parsing) -> bool:
    with suppress(ParseLimitError):
        if parsing(is_within_expression, behind, ahead, language):
            return True
    found = scan(behind, language)
    return bool(found.string) or found.comment or (bool(found.open) and found.open[-1].character != "{")


def _after_opener(behind: str, ahead: str, line_before: str, language: str, parsing: Parsing) -> bool:
    """Whether the last token before the cursor opens a block."""
    line = line_before.rstrip()
    found = scan(behind, language)
    if found.string or found.comment:
        return False
    if language == "python":
        inside = bool(found.open)
        return line.endswith(":") and not inside and line.split()[0].rstrip(":") in _PYTHON_CLAUSES
    if not line.endswith("{"):
        return False
    opens: bool | None = None
    with suppress(ParseLimitError):
        opens = parsing(brace_opens_block, behind, ahead, language)
    if opens is None:  # what stands before the brace tells
        return not line.removesuffix("{").rstrip().endswith(_BEFORE_LITERAL)
    return opens
