"""The language at the cursor: scripts and styles in HTML, Vue and Svelte."""

from __future__ import annotations

import pytest

from completion.decoding.constraints import open_grammar
from completion.prompt.healing import heal
from completion.request import CompletionRequest, Message
from completion.syntax.embedded import embedded
from tests.completion.grammar.acceptors import GRAMMARS

VUE = """<template><p>{{ total }}</p></template>
<script setup lang="ts">
const total: number = |1
</script>
<style scoped>
p { color: red }
</style>
"""
HTML = '<html><head><script type="module">\nimport a from "a"\n|\n</script></head><body>text</body></html>\n'


def at(document: str, language: str) -> CompletionRequest:
    """Return a request at the bar of a document."""
    prefix, _, suffix = document.partition("|")
    return CompletionRequest(prefix, suffix, language=language)


@pytest.mark.parametrize(
    ("document", "language", "inside"),
    [
        (VUE, "vue", ("typescript", "\nconst total: number = ", "1\n")),
        (VUE.replace(' lang="ts"', ""), "svelte", ("javascript", "\nconst total: number = ", "1\n")),
        (VUE.replace("|", "").replace("red", "|red"), "vue", ("css", "\np { color: ", "red }\n")),
        ('<style lang="scss">a {|}</style>', "vue", ("scss", "a {", "}")),
        (HTML, "html", ("javascript", '\nimport a from "a"\n', "\n")),
        ("<script type='application/json'>{|}</script>", "html", ("json", "{", "}")),
    ],
)
def test_a_request_inside_another_language_becomes_one_in_that_language(
    document: str, language: str, inside: tuple[str, str, str]
) -> None:
    found = embedded(at(document, language))
    assert (found.language, found.prefix, found.suffix) == inside


@pytest.mark.parametrize(
    ("document", "language"),
    [
        (VUE.replace("|", "").replace("total }}", "|total }}"), "vue"),  # in the template
        ("<script>let a = '</script>'\n|</script>", "html"),  # HTML ends the script there, too
        ('<script src="a.js" />\n<p>|</p>\n<script>\n</script>', "vue"),
        ("<script type='text/x-unknown'>|</script>", "html"),
        ("<script>let a = {{ a }}|</script>", "html"),  # a template of Django or Jinja
        ("<script>let a = |</script><p><%= b %></p>", "html"),
        ("<svg><style>a {|}</style></svg>", "xml"),
        ("<script type='patterns'>|</script>", "html"),  # a row of the table that is no language
        ("def f():\n    |\n", "python"),
    ],
)
def test_elsewhere_a_request_stays_as_it_is(document: str, language: str) -> None:
    request = at(document, language)
    assert embedded(request) is request


@pytest.mark.parametrize(
    ("document", "language"),
    [
        ("<script>\nlet a = 1\n|", "html"),
        ("<script>\nlet a = 1\n|\n<script>let b = 2</script>", "html"),
    ],
)
def test_what_is_not_closed_yet_may_be_closed_by_the_completion(document: str, language: str) -> None:
    request = at(document, language)
    assert embedded(request) is request


def test_a_conversation_is_in_no_other_language() -> None:
    turn = Message("user", "Write code.")
    request = CompletionRequest("<script>\n", "</script>", language="html", messages=(turn,))
    assert embedded(request) is request


@pytest.mark.parametrize(("typed", "wrong"), [("const a = ", "= 1"), ("if (a) { b(", "} else")])
def test_the_syntax_of_a_script_is_checked_token_by_token(typed: str, wrong: str) -> None:
    request = at(VUE.replace("const total: number = ", f"{typed}|", 1).replace("|1", ""), "vue")
    grammar = open_grammar(embedded(request), heal(request.prefix), GRAMMARS)
    assert grammar.root is not None
    state = grammar.root
    for byte in f"{heal(request.prefix).run}{wrong}".encode():
        after = grammar.advance(state, bytes([byte]))
        if after is None:
            return
        state = after
    pytest.fail(f"{typed}{wrong} was accepted in a script")
