"""Whether an expression or a body surrounds the cursor, by the document's tree."""

from __future__ import annotations

from completion.syntax.trees import ancestors, parse

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
