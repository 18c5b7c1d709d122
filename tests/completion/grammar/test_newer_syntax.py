"""Python that is newer than the interpreter of the engine is completed, and its real errors are still found."""

import pytest

from completion.syntax.trees import parse
from tests.completion.grammar.acceptors import kept_of

AFTER = "\n\nx = 1\n"
NEWER = {
    "type alias": ("type Point = ", "tuple[float, float]", AFTER),
    "type alias with parameters": ("if x:\n    type Named[T: int, *Ts, **P] = ", "dict[str, T]", AFTER),
    "type parameters of a function": ("def first[T](", "items: list[T]) -> T:\n    return items[0]", AFTER),
    "type parameters of a class": ("@final\nclass Box", "[\n    T: (int, str),\n](Base[T]):\n    item: T", AFTER),
    "quote in an f-string": ('print(f"{d["', 'a"]}")', AFTER),
    "backslash in an f-string": ("print(", 'f"{", \\n".join(a)}")', AFTER),
    "lines and a comment in an f-string": ("print(", "rf'{  # all\n    a\n}')", AFTER),
    "template string": ("page = ", 't"<p>{d["name"]}</p>" + rt"""{a}\n"""', AFTER),
    "except without parentheses": ("try:\n    f()\n", "except ValueError, os.error, get():\n    pass", AFTER),
    "unpacking in a comprehension": ("x = ", "f([*a for a in b], {*a for a in b}, (*a for a in b))", AFTER),
}
WRONG = {
    "below a type alias": ("type Point = int\n", "f(a=1, 2)", AFTER),
    "in a function with type parameters": ("def f[\n    T,\n](a):\n    ", "f(a=1, 2)", "\n    return a\n"),
    "in parameters after type parameters": ("", "def f[T](a=1, b):\n    pass", AFTER),
    "in an f-string": ("type Point = int\nx = ", 'f"{f(a=1, 2)}"', AFTER),
    "beside a quote in an f-string": ("type Point = int\nx = ", 'f(f"{d["a"]}", a=1, 2)', AFTER),
    "below an f-string of lines": ("x = f'{  # a\n    a\n}'\n", "f(a=1, 2)", AFTER),
    "beside a template string": ("x = ", 'f(t"{a}", a=1, 2)', AFTER),
    "below except without parentheses": ("try:\n    f()\nexcept A, B:\n    ", "f(a=1, 2)", AFTER),
    "beside unpacking in a comprehension": ("x = ", "f([*a for a in b], a=1, 2)", AFTER),
    "a name of two exceptions": ("try:\n    f()\n", "except A, B as error:\n    pass", AFTER),
}


@pytest.mark.parametrize(("prefix", "middle", "suffix"), NEWER.values(), ids=NEWER)
def test_newer_syntax_stays_whole(prefix, middle, suffix):
    assert parse(prefix + middle + suffix, "python").root_node.has_error is False
    assert kept_of("python", prefix, middle, suffix) == middle


@pytest.mark.parametrize(("prefix", "middle", "suffix"), WRONG.values(), ids=WRONG)
def test_an_error_that_only_python_finds_is_cut_in_a_file_with_newer_syntax(prefix, middle, suffix):
    assert parse(prefix + middle + suffix, "python").root_node.has_error is False
    assert kept_of("python", prefix, middle, suffix) != middle
