"""The outline above a window has the imports and the heads of open scopes, and nothing else."""

import pytest

from completion.prompt.outline_above import MAX_CHARACTERS, first_line, outline_above

PYTHON = """import os
from a import (
    b,
    c,
)

LIMIT = 3


def unrelated():
    return 1


class A(B):
    x = 1

    def f(self, path):
        first = 1
        with path.open() as file:
            second = 2
"""
TYPESCRIPT = """import { a } from './a';
const fs = require('fs');
import type { B } from './b';

function done() {
  return 1;
}

export class C {
  private x = 1;

  f(n: number) {
    if (n > 1) {
      this.x = n;
"""
RUST = "use a::{b, c};\n\npub struct D;\n\nimpl D {\n    pub fn new() -> Self {\n        let x = 1;\n"
GO = 'package a\n\nimport (\n\t"fmt"\n)\n\nfunc f() {\n\tx := 1\n'


PYTHON_IMPORTS = "import os\nfrom a import (\n    b,\n    c,\n)\n"
PYTHON_HEADS = "class A(B):\n    def f(self, path):\n        with path.open() as file:\n"
TYPESCRIPT_OUTLINE = """import { a } from './a';
const fs = require('fs');
import type { B } from './b';
export class C {
  f(n: number) {
    if (n > 1) {
"""


@pytest.mark.parametrize(
    ("language", "above", "below", "outline"),
    [
        ("python", PYTHON, "            third = 3", PYTHON_IMPORTS + PYTHON_HEADS),
        ("python", PYTHON, "VALUE = 4", PYTHON_IMPORTS),
        ("typescript", TYPESCRIPT, "      return n;", TYPESCRIPT_OUTLINE),
        ("rust", RUST, "        D", "use a::{b, c};\nimpl D {\n    pub fn new() -> Self {\n"),
        ("go", GO, "\treturn", 'import (\n\t"fmt"\n)\nfunc f() {\n'),
        ("plaintext", "import os\nif x:\n  a\n", "  b", "if x:\n"),
    ],
)
def test_imports_and_heads(language, above, below, outline):
    assert outline_above(above, below, language) == outline


CSHARP = """namespace Shop
{
    public class Cart : ICart
    {
        private int count;

        public decimal Total(IList<Item> items,
                             decimal rate)
        {
            Check(items);
            foreach (var item in items)
            { // each
"""
CSHARP_OUTLINE = """namespace Shop
{
    public class Cart : ICart
    {
        public decimal Total(IList<Item> items,
        {
            foreach (var item in items)
            { // each
"""
BARE_BRACES = """int f(
    int a
)
{
    g();
    {
        int rows[] =
        {
            {
                1,
            },
            {
"""
BARE_BRACES_OUTLINE = """int f(
{
    {
        int rows[] =
        {
            {
"""
QT = """class Parser : public Base {
public:
    Parser();
private slots:
    void run()
    {
        done();
    }

    void stop(int rows) {
        switch (rows)
        {
        case 1:
            go();
            break;
        case 2: {
"""
QT_OUTLINE = """class Parser : public Base {
private slots:
    void stop(int rows) {
        switch (rows)
        {
        case 2: {
"""


@pytest.mark.parametrize(
    ("above", "below", "outline"),
    [
        (CSHARP, "                sum += item.Price;", CSHARP_OUTLINE),
        ("int f(int a)\n", "{", "int f(int a)\n"),
        ("int f(int a)\n{\n}\n", "{", ""),
        ("f(\n    a\n);\n{\n", "    int b;", "{\n"),
        (BARE_BRACES, "                2,", BARE_BRACES_OUTLINE),
        (QT, "            go();", QT_OUTLINE),
        ("func f() {\n\tselect {\n\tcase <-a:\n", "\t\tgo()", "func f() {\n\tselect {\n\tcase <-a:\n"),
        ("a: {\n    b: 1\n}\ndefault: {\n", "    b: 2", "default: {\n"),
        ("kind: b\npublic:\n", "    c: 2", "public:\n"),
    ],
    ids=[
        "after each head", "first in the window", "after another function", "after a call", "without a head",
        "labels of a class and a switch", "cases of Go", "a key named like a label", "a key without braces",
    ],
)  # fmt: skip
def test_a_brace_or_label_at_the_column_of_its_head_does_not_hide_the_head(above, below, outline):
    assert outline_above(above, below, "plaintext") == outline


def test_an_outline_is_bounded_and_keeps_the_last_imports():
    above = "".join(f"import module_{number}\n" for number in range(500))
    outline = outline_above(above, "x = 1", "python")
    assert len(outline) <= MAX_CHARACTERS
    assert outline.endswith("import module_499\n")


@pytest.mark.parametrize(
    ("above", "innermost"),
    [
        ("class A(" + "B, " * 7_000 + "C):\n    def f(self):\n", "    def f(self):\n"),
        ("".join(" " * depth + f"if level_{depth}:\n" for depth in range(200)), " " * 199 + "if level_199:\n"),
    ],
    ids=["a head of 20,000 characters", "200 levels"],
)
def test_heads_are_bounded_and_the_innermost_are_kept(above, innermost):
    outline = outline_above(above, " " * 300 + "x", "python")
    assert len(outline) <= MAX_CHARACTERS
    assert outline.endswith(innermost)


def test_the_first_line_that_is_not_blank():
    assert first_line("\n  \n  a\nb") == "  a"
    assert first_line("\n") == ""
