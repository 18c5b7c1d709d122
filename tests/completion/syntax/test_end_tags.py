"""An end tag that the document has already is found; one that it lacks, or that the text opens, is not."""

import pytest

from completion.syntax.end_tags import begun_end_tag, doubled_end_tag

ITEM = ('<ul>\n  <li class="a">\n    <b>x</b>\n    ', "\n  </li>\n</ul>\n")


@pytest.mark.parametrize(
    ("before", "text", "after", "kept"),
    [
        (ITEM[0], "</li>", ITEM[1], ""),
        (ITEM[0], "<i>y</i>\n  </li>", ITEM[1], "<i>y</i>\n  "),
        (ITEM[0] + "<", "/li>", ITEM[1], ""),
        ("<p>\n  {% if a %}\n    b\n    ", "{% endif %}", "\n  {% endif %}\n</p>", ""),
        ("{#each xs as x}\n  a\n  ", "{/each}", "\n{/each}\n", ""),
        ("<X on={() => { go(a); }}>\n  a\n  ", "</X>", "\n</X>", ""),
    ],
)
def test_an_end_tag_that_stands_below_is_doubled(before, text, after, kept):
    offset = doubled_end_tag(text, before, after)
    assert offset is not None
    assert text[:offset] == kept


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (ITEM[0], "<i>y</i>", ITEM[1]),
        (ITEM[0], "</li>\n  <li>\n    y", ITEM[1]),
        (ITEM[0], "</li>\n  <li\n    class", ITEM[1]),
        (ITEM[0] + "<li>", "y</li>", ITEM[1]),
        (ITEM[0] + '<li class="', 'y">z</li>', ITEM[1]),
        (ITEM[0] + "</", "li>", ITEM[1]),
        (ITEM[0], "</li>", "\n</ul>\n"),
        (ITEM[0] + "<X a />", "</li>", "\n</ul>\n"),
        ("{% if a %}\n  b\n", "{% endif %}", "\n{% if c %}\n{% endif %}"),
    ],
)
def test_another_end_tag_stays(before, text, after):
    assert doubled_end_tag(text, before, after) is None


def test_an_element_that_an_unfinished_text_opens_again_may_still_be_closed_by_it():
    assert doubled_end_tag("</li>\n  <li>", *ITEM, unfinished=True) == 0


@pytest.mark.parametrize("text", ["a</", "a</li", "a{% endi", "a{/i", "a<", "a{"])
def test_the_beginning_of_an_end_tag_is_found(text):
    assert begun_end_tag(text, "<p>") == 1


@pytest.mark.parametrize("text", ["a", "a</li>", "a{% if b", "<li"])
def test_what_becomes_no_end_tag_is_not_waited_for(text):
    assert begun_end_tag(text, "<p>") == len(text)
