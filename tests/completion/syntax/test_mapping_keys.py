"""Keys of mappings are found by indentation, each with what stands beside it."""

import pytest

from completion.syntax.mapping_keys import key_of, keys_beside


@pytest.mark.parametrize(
    ("line", "language", "key"),
    [
        ("  image: redis:7", "yaml", "image"),
        ("  '/pet/{id}':", "yaml", "/pet/{id}"),
        ("  /pet/findByStatus:", "yaml", "/pet/findByStatus"),
        ("  app.kubernetes.io/name: web", "yaml", "app.kubernetes.io/name"),
        ("  image", "yaml", None),
        ("  http://example.com", "yaml", None),
        ("  <<: *base", "yaml", None),
        ("  - name: web", "yaml", None),
        ("  # name: web", "yaml", None),
        ("  {{- if .Values.a }}", "yaml", None),
        ('  "a\\"b" : 1', "json", 'a\\"b'),
        ('  "a",', "json", None),
        ("  a: 1", "json", None),
        ("log = 1", "toml", "log"),
        ("edition.workspace = true", "toml", "edition.workspace"),
        ("[tool.a]  # why", "toml", "[tool.a]"),
        ("[[tool.a]]", "toml", None),
        ('  ["a"]', "toml", None),
        ("image: a", "markdown", None),
    ],
)
def test_the_key_of_a_line(line, language, key):
    assert key_of(line, language) == key


def test_keys_of_lists_that_are_not_indented_belong_to_their_items():
    before = "containers:\n- name: a\n  image: b\nvolumes:\n"
    assert keys_beside("a", before, "", "- name: c\nstatus:", "yaml") == {"containers", "volumes", "status"}
    assert keys_beside("  a", before, "- name: d\n", "  image: e\n- name: c", "yaml") == {"name", "image"}


def test_comments_and_blank_lines_end_no_mapping():
    assert keys_beside("  x", "  a: 1\n\n# why\n  # b: 2\n", "", "\n# c\n  d: 4\ne: 5", "yaml") == {"a", "d"}


def test_the_tables_of_toml_are_those_of_the_whole_document():
    before, below = "[a]\nx = 1\n[[b]]\n", "[a.c]\ny = 2\n"
    assert keys_beside("[", before, "[d]\n", below, "toml") == {"[a]", "[d]", "[a.c]"}
