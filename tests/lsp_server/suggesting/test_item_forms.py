"""Items in the form that each editor handles; the conversions of clients are replayed from their sources."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lsprotocol import types

from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.text_lines import Place
from lsp_server.settings.client_profile import ClientProfile, ItemRange, profile_of
from lsp_server.settings.experiment import NO_ARM
from lsp_server.settings.table import DEFAULTS
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.items import inline_items, list_items
from lsp_server.suggesting.narrowing import Remainder, inserted
from lsp_server.suggesting.query import Answer, Query, selected_text, situation_at

PLAIN = ClientProfile()


def client(name="", completion=None, *, inline=True):
    inline_completion = types.InlineCompletionClientCapabilities() if inline else None
    capabilities = types.TextDocumentClientCapabilities(inline_completion=inline_completion, completion=completion)
    return types.InitializeParams(
        capabilities=types.ClientCapabilities(text_document=capabilities), client_info=types.ClientInfo(name)
    )


def query_between(before, after, profile=PLAIN):
    documents = DocumentStore()
    document = documents.open(types.TextDocumentItem("file:///a.py", "python", 1, before + after))
    place = document.lines.advance(Place(0, 0), len(before))
    position, situation = document.position(place), situation_at(document, place)
    return Query(document, 1, place, position, situation, True, 0.0, DEFAULTS, NO_ARM, single=True, profile=profile)


def item_for(query, left):
    """The item that the server sends for a remainder."""
    left = inserted(left, query.situation) if query.item_range is ItemRange.CURSOR else left
    (item,) = inline_items(query, Answer(Generation("id", query.situation), (left,)))
    return item


def in_line(query, position):
    """Offset of a position on the cursor's line in the text."""
    start = len(query.situation.prefix) - query.position.character
    return start + position.character


def lsp4ij_screen_and_document(query, item):
    """LSP4IJ 0.20: the replaced text is drawn first, then the item's text in grey; accepting inserts the grey text."""
    text, cursor = query.situation.prefix + query.situation.suffix, len(query.situation.prefix)
    end = in_line(query, item["range"].end)
    shown = (
        text[:end] + item["insertText"] + text[end:]
        if end > cursor
        else text[:cursor] + item["insertText"] + text[cursor:]
    )
    return shown, text[:end] + item["insertText"] + text[end:]


def lsp_mode_document(query, item):
    """lsp-mode 9: the range is deleted if it is not empty, and the text inserted."""
    text = query.situation.prefix + query.situation.suffix
    start, end = in_line(query, item["range"].start), in_line(query, item["range"].end)
    return text[:start] + item["insertText"] + text[end:]


def neovim_screen(query, item):
    """Neovim 0.12's own inline completion: what the line shows, the first line of the item drawn over it."""
    line = (query.situation.prefix + query.situation.suffix.split("\n")[0]).split("\n")[-1]
    start, first = item["range"].start.character, item["insertText"].split("\n")[0]
    return line[:start] + first + line[start + len(first) :]


BEFORE_AND_AFTER = ("x = f(a[", "])", "0], b)", 2)
PLACES = [
    ("print(", ")", "name)", 1),
    ("x = f(a[", "])", "0])", 2),
    ('open("', '")', 'a.txt")', 2),
    ("if (", ") {\n}", "x > 0) {", 3),
    ("    foo(", ");\n", "1, 2);", 2),
    ("<a href={", "}>", "url}>", 2),
    ("x = ", "\n", "1", 0),
    ("\tf(", ")\r\n", "𝒳)", 1),
]


@pytest.mark.parametrize(("before", "after", "text", "replaced"), PLACES)
def test_what_jetbrains_shows_and_accepts_is_the_document_of_our_own_plugins(before, after, text, replaced):
    query = query_between(before, after, profile_of(client("IntelliJ IDEA 2026.1")))
    item = item_for(query, Remainder(0, text, replaced))
    assert item["range"].end == query.position
    shown, accepted = lsp4ij_screen_and_document(query, item)
    assert shown == accepted == before + text + after[replaced:]


def test_jetbrains_gets_the_start_of_a_text_that_goes_on_between_the_characters_that_it_replaces():
    before, after, text, replaced = BEFORE_AND_AFTER
    item = item_for(query_between(before, after, profile_of(client("PyCharm"))), Remainder(0, text, replaced))
    assert item["insertText"] == "0"


@pytest.mark.parametrize(("before", "after", "text", "replaced"), [*PLACES, BEFORE_AND_AFTER])
def test_lsp_mode_accepts_what_our_own_plugins_accept(before, after, text, replaced):
    query = query_between(before, after, profile_of(client("emacs", inline=False)))
    assert query.profile.has_inline
    item = item_for(query, Remainder(0, text, replaced))
    assert lsp_mode_document(query, item) == before + text + after[replaced:]


def test_lines_for_neovims_own_inline_completion_end_in_a_bare_newline_in_any_document():
    query = query_between("def f(x):\r\n    ", "\r\n", profile_of(client("Neovim")))
    assert item_for(query, Remainder(0, "a\r\n    b", 0))["insertText"] == "a\n    b"


@pytest.mark.parametrize(("before", "after", "text", "replaced"), [place for place in PLACES if "\r" not in place[1]])
def test_neovims_own_inline_completion_shows_the_line_as_it_will_be(before, after, text, replaced):
    query = query_between(before, after, profile_of(client("Neovim")))
    item = item_for(query, Remainder(0, text, replaced))
    accepted = before + text + after[replaced:]
    assert lsp_mode_document(query, item) == accepted  # it replaces the range in the same way
    assert neovim_screen(query, item) == accepted.split("\n")[0]


def test_neovim_shows_the_bracket_after_the_cursor():
    item = item_for(query_between("f(", ")", profile_of(client("Neovim"))), Remainder(0, "x", 0))
    assert (item["insertText"], item["range"].end.character) == ("x)", 3)


@pytest.mark.parametrize(
    ("after", "text", "replaced", "rest"),
    [
        (")", "a, b):\n    return a", 1, "a, b"),
        ('")', 'a", b)\n', 2, "a"),
        ("])", "0] + g(1)) or x", 2, "0"),
        (";", "x; y()", 1, "x"),
    ],
)
def test_a_text_that_goes_on_after_what_it_replaces_ends_before_it(after, text, replaced, rest):
    query = query_between("f(", after)
    assert inserted(Remainder(0, text, replaced), query.situation) == Remainder(0, rest, 0)


@given(
    st.text(alphabet='a("[', max_size=8),
    st.text(alphabet=')"];', max_size=4),
    st.text(alphabet='a)("];[ \n', max_size=12),
)
@example("f(", ")", "a)")
def test_an_insertion_leaves_all_characters_after_the_cursor(before, after, text):
    query = query_between(before, after)
    for replaced in range(len(after) + 1):
        left = inserted(Remainder(0, text, replaced), query.situation)
        assert left.replace_after == 0
        assert text.startswith(left.text)
        if text.endswith(after[:replaced]):
            assert before + left.text + after == before + text + after[replaced:]


def test_the_client_may_say_what_its_items_replace():
    query = query_between("f(", ")", profile_of(client()))
    assert query.item_range is ItemRange.CURSOR
    own = replace(query, settings=replace(DEFAULTS, item_range=ItemRange.REPLACED))
    assert item_for(own, Remainder(0, "x)", 1))["range"].end.character == 3


def completion_of(modes=None, default=None):
    support = types.ClientCompletionItemInsertTextModeOptions(modes) if modes else None
    item = types.ClientCompletionItemOptions(insert_text_mode_support=support)
    return types.CompletionClientCapabilities(completion_item=item, insert_text_mode=default)


BODY = "if x:\n        return 1\n    return 2"
MODES = types.InsertTextMode


@pytest.mark.parametrize(
    ("completion", "mode", "text"),
    [
        (completion_of([MODES.AsIs, MODES.AdjustIndentation]), MODES.AsIs, BODY),  # lsp-mode, vscode-languageclient
        (
            completion_of([MODES.AdjustIndentation]),
            MODES.AdjustIndentation,
            "if x:\n    return 1\nreturn 2",
        ),  # Sublime Text
        (completion_of(default=MODES.AdjustIndentation), MODES.AdjustIndentation, "if x:\n    return 1\nreturn 2"),
        (completion_of(), None, "if x:"),  # ALE indents further lines and does not say so
        (None, None, "if x:"),
    ],
)
def test_a_list_item_is_indented_once_whoever_indents_it(completion, mode, text):
    query = query_between("def f(x):\n    ", "", profile_of(client(completion=completion, inline=False)))
    (item,) = list_items(query, Answer(Generation("id", query.situation), (Remainder(0, BODY, 0),)))
    assert item.insert_text_mode is mode
    assert item.text_edit.new_text == text
    if mode is MODES.AdjustIndentation:
        first, *others = text.split("\n")
        assert "\n    ".join([first, *others]) == BODY  # as LSP 3.18 says what the client does
    assert not item.preselect


@pytest.mark.parametrize(
    ("before", "text", "item"),
    [
        ("def f():\n    ", "a\n\nb", "a"),
        ("", "a\n\nb", "a\n\nb"),
        ("x = foo(\n    a,", "\n    b,\n)", "\nb,"),
        ("if a:\n\t", "b\n    c", "b"),
    ],
)
def test_a_client_that_indents_gets_no_line_that_it_would_indent_too_far(before, text, item):
    profile = profile_of(client(completion=completion_of([MODES.AdjustIndentation]), inline=False))
    query = query_between(before, "", profile)
    (listed,) = list_items(query, Answer(Generation("id", query.situation), (Remainder(0, text, 0),)))
    assert listed.text_edit.new_text == item


def test_an_editor_that_is_known_to_insert_lines_as_they_are_gets_them_all():
    query = query_between("def f(x):\n    ", "", profile_of(client("Eglot", completion_of(), inline=False)))
    (item,) = list_items(query, Answer(Generation("id", query.situation), (Remainder(0, BODY, 0),)))
    assert (item.text_edit.new_text, item.insert_text_mode) == (BODY, None)


@pytest.mark.parametrize(("text", "replaced", "item"), [("a,\n  b)", 1, "a,"), ("a)", 1, "a)"), ("\n  a\n)", 1, None)])
def test_the_first_line_of_several_replaces_nothing_and_may_be_empty(text, replaced, item):
    query = query_between("f(", ")", ClientProfile(has_inline=False, list_lines=False))
    items = list_items(query, Answer(Generation("id", query.situation), (Remainder(0, text, replaced),)))
    assert [one.text_edit.new_text for one in items] == ([item] if item else [])
    assert all(one.text_edit.range.end.character == 2 + replaced * ("\n" not in text) for one in items)


@pytest.mark.parametrize(
    ("before", "start", "selected", "rest"),
    [("x.na", 2, "name", "me"), ("x.", 2, "name", "name"), ("x.na", 2, "other", None), ("x.na", 3, "am", "m")],
)
def test_what_a_selected_list_item_would_insert(before, start, selected, rest):
    query = query_between(before, "")
    range_ = types.Range(types.Position(0, start), query.position)
    assert selected_text(query, types.SelectedCompletionInfo(range_, selected)) == rest
    assert selected_text(query, None) == ""
