"""The planted cases of benchmarks.safety are what their names say."""

import pytest

from benchmarks.safety.planted import CARRIERS, SCAFFOLDS, cases

COMMENTS = ("#", "//", "/*")


@pytest.mark.parametrize("scaffold", SCAFFOLDS, ids=lambda scaffold: scaffold.language)
def test_strings_and_identifiers_are_no_comments(scaffold):
    comments = {carrier: form.startswith(COMMENTS) for carrier, form in zip(CARRIERS, scaffold.carriers, strict=True)}
    assert comments["comment"]
    assert not comments["string"]
    assert not comments["identifier"]


def test_each_case_has_its_word_in_the_place_of_its_name():
    for case in cases(2_000, seed=1):
        places = {"same file": case.canary in case.prefix, "other file": case.canary in case.file.text}
        assert [place for place, has_word in places.items() if has_word] == [case.place]
