"""The verdicts of benchmarks.joining: what the product keeps, and what breaks the document."""

import gzip
import json
import sys
from collections import Counter

import pytest

from benchmarks.joining.__main__ import main
from benchmarks.joining.triples import DATA, Kind, Triple, triples
from benchmarks.joining.verdicts import verdict

RECORD = {
    "id": "a",
    "language": "go",
    "prefix": "package a\n\nfunc f() {\n\t",
    "reference": "g(a[0])",
    "suffix": "\n\th()\n}\n",
}


def test_the_texts_at_a_cursor():
    found = [*triples(RECORD)]
    assert found == [*triples(RECORD)]
    assert Counter(each.kind for each in found) == Counter(Kind) + Counter([Kind.START])
    assert [each.text for each in found if each.kind in (Kind.WHOLE, Kind.REPEATED)] == ["g(a[0])", "g(a[0])\n\th()"]


def test_a_whole_text_is_kept_and_one_with_a_bracket_too_many_is_cut():
    texts = [("g(a[0])", Kind.WHOLE), ("g(a[", Kind.START), ("g(a[0]])", Kind.ADDED)]
    asked = [Triple("go", kind, RECORD["prefix"], text, RECORD["suffix"]) for text, kind in texts]
    assert [verdict(each, invoked=False).kept for each in asked] == [True, True, False]


@pytest.mark.parametrize(
    ("language", "prefix", "text", "suffix", "invoked"),
    [
        ("java", "class A {\n  void f() {\n    g(1).h", "();\n  }", "\n  }\n\n  void k() {\n  }\n}\n", True),
        ("c", "int f(void) {\n    return g(a, b", "c);\n}", "\n}\n\nint h(void) {\n    return 1;\n}\n", True),
        ("javascript", "function f() {\n  const q = new URL", "rLoad} */", "}\n  q.set(a);\n}\n", False),
    ],
)
def test_a_closer_that_stands_below_is_cut(language, prefix, text, suffix, invoked):
    assert not verdict(Triple(language, Kind.REPEATED, prefix, text, suffix), invoked=invoked).kept


@pytest.mark.parametrize(
    ("prefix", "text", "suffix"),
    [
        ("def f(", "a: int", "):\n\n\nx = 1\n"),
        ("class A(", "B", "):\n\n\nx = 1\n"),
        ("def f(", "a: int", "):\n    return a\n"),
        ("if f(", "a", "):\n\nx = 1\n"),
    ],
)
def test_a_head_before_its_colon_is_kept_also_without_a_body(prefix, text, suffix):
    for kind in (Kind.WHOLE, Kind.START):
        assert verdict(Triple("python", kind, prefix, text, suffix), invoked=False).kept


def test_a_run_prints_its_figures(tmp_path, monkeypatch, capsys):
    for name in DATA:
        with gzip.open(tmp_path / name, "wt") as file:
            file.write(json.dumps(RECORD) + "\n")
    out = tmp_path / "verdicts"
    command = ["joining", "--cursors", "1", "--languages", "go", "--data-dir", str(tmp_path)]
    command += ["--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    main()
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["by_kind"]["whole, automatic"] == {"texts": 1, "kept": 1}
    assert len(out.read_text().splitlines()) == figures["texts"]
    assert set(figures) >= {f"{value}_{share}" for value in ("steps", "ms") for share in ("median", "p95", "max")}
    assert figures["by_language"].keys() == {"go"}
    assert {"whole, automatic", "whole, manual", "start, automatic"} <= figures["by_kind"].keys()
