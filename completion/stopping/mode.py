"""Chooses between a line and a block by the syntax at the cursor."""

from __future__ import annotations

from contextlib import suppress

from completion.errors import ParseLimitError
from completion.postprocess import Context
from completion.request import CompletionRequest, Mode
from completion.syntax.brackets import CLOSERS, scan
from completion.syntax.indent_style import depth
from completion.syntax.parser_process import IN_PROCESS, Parsing
from completion.syntax.trees import ancestors, parse

_MAX_CHARACTERS_BEFORE = 12_000  # of the prefix that are parsed
_MAX_CHARACTERS_AFTER = 4_000  # of the suffix that are parsed
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
)  # first words of a line that opens a block


def cursor_context(request: CompletionRequest, parsing: Parsing = IN_PROCESS) -> Context:
    """Return the document around the cursor for stop rules and filters, with LINE or BLOCK in place of AUTO."""
    mode = request.mode
    if mode is Mode.AUTO:
        mode = decide(request.prefix, request.suffix, request.language, parsing)
    return Context.of(request.prefix, request.suffix, request.language, mode, invoked=request.invoked)


def decide(prefix: str, suffix: str, language: str, parsing: Parsing = IN_PROCESS) -> Mode:
    """Return LINE or BLOCK for a cursor between `prefix` and `suffix`.

    BLOCK: after the opener of a block, and on an empty line where a block ends. LINE (the line may bring the body that
    it opens): everywhere else, as with text after the cursor, in strings, comments and expressions, at the end of a
    statement, and on an empty line between lines of a block.
    """
    line_before = prefix[prefix.rfind("\n") + 1 :]
    line_after = suffix.partition("\n")[0]
    if not set(line_after) <= _CLOSING:
        return Mode.LINE
    before, after = prefix[-_MAX_CHARACTERS_BEFORE:], suffix[:_MAX_CHARACTERS_AFTER]
    if line_before.strip():
        return Mode.BLOCK if _after_opener(before, after, line_before, language, parsing) else Mode.LINE
    if line_after.strip():
        return Mode.LINE
    if _block_continues(before, after):
        return Mode.LINE
    return Mode.LINE if _in_expression(before, after, language, parsing) else Mode.BLOCK


def _block_continues(before: str, after: str) -> bool:
    """Return whether the block of an empty line continues below it."""
    above, _, indentation = before.rpartition("\n")
    last = above.rstrip().rpartition("\n")[2]
    below = next((line for line in after.split("\n")[1:] if line.strip()), "")
    if not below or below.lstrip()[0] in CLOSERS:
        return False
    return depth(below) >= (depth(indentation + "|") if indentation else depth(last) + last.endswith((":", "{")))


def is_within_expression(before: str, after: str, language: str) -> bool:
    """Return whether the innermost body or expression around the cursor is an expression; False without a grammar."""
    tree = parse(before + after, language)
    if tree is None:
        return False
    cursor = len(before.encode("utf-8", "replace"))
    around = ancestors(tree.root_node.descendant_for_byte_range(cursor, cursor))
    return next((node.type for node in around if node.type in _BODY | _EXPRESSION), "") in _EXPRESSION


def brace_opens_block(before: str, after: str, language: str) -> bool | None:
    """Return whether the brace before the cursor opens a block; None if the document has no closer for it yet."""
    tree = parse(before + after, language)
    if tree is None:
        return True
    end = len(before.rstrip().encode("utf-8", "replace"))
    brace = tree.root_node.descendant_for_byte_range(end - 1, end)
    parent = brace.parent if brace is not None else None
    return None if parent is None or parent.type == "ERROR" else parent.type not in _EXPRESSION


def _in_expression(before: str, after: str, language: str, parsing: Parsing) -> bool:
    with suppress(ParseLimitError):
        if parsing(is_within_expression, before, after, language):
            return True
    found = scan(before, language)
    return bool(found.string) or found.comment or (bool(found.open) and found.open[-1].character != "{")


def _after_opener(before: str, after: str, line_before: str, language: str, parsing: Parsing) -> bool:
    """Return whether the last token before the cursor opens a block."""
    line = line_before.rstrip()
    found = scan(before, language)
    if found.string or found.comment:
        return False
    if language == "python":
        inside = bool(found.open)
        return line.endswith(":") and not inside and line.split()[0].rstrip(":") in _PYTHON_CLAUSES
    if not line.endswith("{"):
        return False
    opens: bool | None = None
    with suppress(ParseLimitError):
        opens = parsing(brace_opens_block, before, after, language)
    if opens is None:  # the text before the brace decides
        return not line.removesuffix("{").rstrip().endswith(_BEFORE_LITERAL)
    return opens
