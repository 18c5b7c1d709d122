"""Recorded sessions with rated edits: the document where the user stopped, and the rating of what is offered there."""

import json

import pytest

from benchmarks.next_edit import __main__ as next_edit
from benchmarks.next_edit.recordings import Rating, recordings
from completion.edits import LineEdit
from completion.next_edit.rewrites import Candidate

TEXT = "𝄞 = 1\nzstd = 2\nx = zstd\ny = zstd\n"
NAME = TEXT.index("zstd") + 1  # in UTF-16 units, of which the first character has two


def recorded(folder, *rated, name="rename", changes=((NAME, NAME + 4, "zstandard"),)):
    """Write a recording in which a name of the second line is replaced, with the rated edits."""
    place = folder / name
    place.mkdir()
    log = [
        {"kind": "meta", "data": {}},
        {"kind": "documentEncountered", "id": 7, "relativePath": "src\\a.py"},
        {"kind": "setContent", "id": 7, "content": TEXT},
        *({"kind": "changed", "id": 7, "edit": [list(each)]} for each in changes),
        {"kind": "selectionChanged", "id": 7, "selection": [[0, 0]]},
    ]
    (place / "recording.w.json").write_text(json.dumps({"log": log}))
    edits = [{"edit": edit, "scoreCategory": category} for category, edit in rated]
    (place / "scoredEdits.w.json").write_text(json.dumps({"edits": edits}))
    return place


def renamed(line: int, name: str = "zstandard") -> Candidate:
    old = TEXT.split("\n")[line]
    return Candidate(line, (old,), (old.replace("zstd", name),), frozenset({"name"}), 0)


USE = NAME + len("zstandard = 2\nx = ")


def test_a_recording_is_the_document_after_its_edits(tmp_path):
    recorded(tmp_path)
    (found,) = recordings(tmp_path)
    assert found.state.lines == ("𝄞 = 1", "zstandard = 2", "x = zstd", "y = zstd", "")
    assert found.state.edits == (LineEdit(1, ("zstd = 2",), ("zstandard = 2",)),)
    assert (found.state.path, found.state.language) == ("src/a.py", "python")


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        ([], Rating.SILENT),
        ([renamed(2)], Rating.GOOD),
        ([renamed(2), renamed(3)], Rating.GOOD),
        ([renamed(3)], Rating.PART),
        ([renamed(2, "zip")], Rating.BAD),
        ([renamed(3, "zip"), renamed(2, "zip")], Rating.UNRATED),
        ([renamed(3, "lz4")], Rating.UNRATED),
    ],
)
def test_an_offer_is_rated_by_the_document_that_it_makes(tmp_path, offered, expected):
    other = USE + len("zstd\ny = ")
    recorded(
        tmp_path,
        ("nextEdit", [[USE, USE + 4, "zstandard"]]),
        ("valid", [[USE, USE + 4, "zstandard"], [other, other + 4, "zstandard"]]),
        ("valid", None),
        ("bad", [[USE, USE + 4, "zip"]]),
    )
    (found,) = recordings(tmp_path)
    assert found.rating(offered) is expected


def test_the_benchmark_prints_the_ratings_and_their_numbers(tmp_path, monkeypatch, capsys):
    recorded(tmp_path, ("valid", [[USE, USE + 4, "zip"]]), ("bad", [[USE, USE + 4, "zstandard"]]), name="a")
    recorded(tmp_path, name="b", changes=((0, 0, "\n"),))
    monkeypatch.setattr("sys.argv", ["next_edit", "--model", "none", "--recordings", str(tmp_path)])
    next_edit.main()
    *ratings, numbers = capsys.readouterr().out.splitlines()
    assert [line.split() for line in ratings] == [["bad", "a"], ["silent", "b"]]
    assert json.loads(numbers) == {"recordings": 2, "good": 0, "part": 0, "bad": 1, "unrated": 0, "silent": 1}


def test_a_folder_without_recordings_or_edits_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="has no recordings"):
        recordings(tmp_path)
    recorded(tmp_path, changes=())
    with pytest.raises(SystemExit, match="has no edit"):
        recordings(tmp_path)
