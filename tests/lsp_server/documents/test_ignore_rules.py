"""Ignore rules match what git matches, line by line, and no rule takes long."""

import cProfile
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lsp_server.documents.file_policy import FilePolicy
from lsp_server.documents.rules.ignore_rules import IgnoreRules, TooManyGlobsError
from lsp_server.empty_reason import EmptyReason

GLOB_PARTS = st.sampled_from(
    ["a", "b", "A", "é", "*", "**", "***", "?", "/", "**/", "/**", "a/", "dir/", "\\", "\\*", "!", "#", " ", "\\ ",
     "\r", "[ab]", "[!a]", "[^a-c]", "[z-a]", "[a-", "[]a]", "[a-]", "[--0]", "[\\]]", "[a-\\c]", "[[:alpha:]]",
     "[[:digit:]b]", "[[:punct:]]", "[[:space:]]", "[[:cntrl:]]", "[![:upper:]]", "[[:nope:]]", "[[:al",
     "[[:]", "[", "]", "-", "."]
)  # fmt: skip
LINES = st.lists(GLOB_PARTS, max_size=6).map("".join)
RULES = st.lists(LINES, max_size=4).map("\n".join)
NAMES = st.sampled_from(
    ["a", "b", "ab", "ba", "A", "1", "a b", "a ", " ", "*", "-", "]", "[", "#a", "!a", "é", "\\", "\t"]
)
PATHS = st.tuples(st.sampled_from(["", "dir/", "dir/dir/"]), st.lists(NAMES, min_size=1, max_size=3).map("/".join))


def ignored_by_git(root, paths):
    no_config = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "XDG_CONFIG_HOME": os.devnull}
    result = subprocess.run(
        ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(sorted(paths)).encode(), capture_output=True, check=False, env={**os.environ, **no_config},
    )  # fmt: skip
    assert result.returncode in (0, 1), result.stderr
    return {path.decode() for path in result.stdout.split(b"\0") if path}


def ignored_by_us(root, paths):
    """Return the paths that are ignored where git is not installed."""
    policy = FilePolicy(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(root))
        return {path for path in paths if policy.refusal(root / path) is EmptyReason.IGNORED_FILE}


@pytest.mark.skipif(not shutil.which("git"), reason="git is the reference")
@settings(max_examples=100)
@given(st.sets(PATHS.map("".join), min_size=1, max_size=20), RULES, RULES)
@example({"a", "dir/a"}, "a\\\n!\n[z-a]\na\\\nb", "!/\n/")
@example({"ab", "a/b", "1"}, "[[:alpha:]]b\n!/\n[[:digit:]]", "")
@example({"ac/d/b", "a/b", "dir/ac/b"}, "a**/b", "/a**")
@example({"a b", "dir/a "}, "a\\ b \r\n", "\ufeffa\\ ")
def test_exactly_the_files_that_git_ignores_are_ignored(paths, rules, rules_below):
    files = {path for path in paths if not any(other.startswith(path + "/") for other in paths)}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        subprocess.run(["git", "init", "-q", name], check=True)
        (root / ".gitignore").write_bytes(rules.encode())
        (root / "dir" / "dir").mkdir(parents=True)
        (root / "dir" / ".gitignore").write_bytes(rules_below.encode())
        (root / "dir" / "dir" / ".gitignore").write_text("!b\n")
        (root / ".git" / "info").mkdir(exist_ok=True)
        (root / ".git" / "info" / "exclude").write_text("b\n")
        assert ignored_by_us(root, files) == ignored_by_git(root, files)


@pytest.mark.parametrize("line", ["a\\", "\\", "!", "!/", "/", "[z-a]", "[", "[[:nope:]]", "foo[a-\\"])
def test_a_malformed_line_does_not_affect_the_other_lines(tmp_path, line):
    (tmp_path / ".gitignore").write_text(f"*.log\n{line}\n/build/\n")
    assert ignored_by_us(tmp_path, ["a.py", "b.log", "build/x", "src/build/x"]) == {"b.log", "build/x"}


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a*a*a*a*a*a*a*b", "a" * 250),
        ("*a" * 2000 + "b", "a" * 4000),
        ("**/" + "*a" * 100 + "b", "/".join(["a" * 100] * 40)),
        ("**/a*/" * 300 + "b", "a/" * 2000 + "c"),
        ("**/*a?a?a*a*/" * 50 + "b", "aaaa/" * 800 + "c"),
        ("a**\\/" * 50 + "z", "a/" * 2000 + "c"),
    ],
)
def test_a_glob_with_many_asterisks_is_matched_without_backtracking(glob, path):
    """With backtracking, the first of these globs takes seconds and the others do not end."""
    assert IgnoreRules(glob.encode(), max_globs=1).verdict(path.encode(), is_folder=False) is None
    assert IgnoreRules(glob[:-1].encode(), max_globs=1).globs == 1


def test_only_rules_with_wildcards_are_compiled_and_their_number_is_limited():
    assert IgnoreRules(b"\n".join(b"name%d/" % number for number in range(9000)), max_globs=180).globs == 180
    with pytest.raises(TooManyGlobsError):
        IgnoreRules(b"a*\nb*\nc*\n", max_globs=2)


def test_a_folder_whose_ignore_file_is_too_large_is_ignored(tmp_path):
    (tmp_path / "wide").mkdir()
    (tmp_path / "wide" / ".gitignore").write_text("".join(f"a{number}*\n" for number in range(2000)))
    (tmp_path / "long").mkdir()
    (tmp_path / "long" / ".gitignore").write_text("name\n" * 50_000)
    assert ignored_by_us(tmp_path, ["wide/x", "long/x", "x"]) == {"wide/x", "long/x"}


def test_the_limit_of_rules_counts_the_rules_of_all_folders_above(tmp_path):
    deep = tmp_path
    for _ in range(5):
        deep = deep / "d"
        deep.mkdir()
        (deep / ".gitignore").write_text("".join(f"a{number}*\n" for number in range(400)))
    assert ignored_by_us(tmp_path, ["d/d/x", "d/d/d/x", "d/d/d/d/x"]) == {"d/d/d/x", "d/d/d/d/x"}


LINES = st.sampled_from(["a", "b", "/a", "a/b", "!a", "!a/b", "a/", "!b/", "*", "!*a", "a*/", "", "#a", "!/a/", "b/a/"])


@given(st.lists(LINES, max_size=12), st.sampled_from(["a", "b", "a/b", "b/a", "c/a", "c"]), st.booleans())
def test_rules_that_are_looked_up_decide_as_they_do_one_by_one(lines, path, is_folder):
    one_by_one = [IgnoreRules(line.encode(), 1).verdict(path.encode(), is_folder=is_folder) for line in lines]
    expected = next((verdict for verdict in reversed(one_by_one) if verdict is not None), None)
    assert IgnoreRules("\n".join(lines).encode(), 100).verdict(path.encode(), is_folder=is_folder) is expected


def test_a_check_takes_the_same_with_ten_thousand_rules_without_wildcards():
    def calls(count):
        rules = IgnoreRules(b"\n".join(b"n%d" % number for number in range(count)), max_globs=1000)
        with cProfile.Profile() as profile:
            assert rules.verdict(b"folder/file", is_folder=False) is None
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(10_000) == calls(1)


def test_one_letter_rules_in_every_nested_folder_are_read_within_the_budget_of_all():
    with pytest.raises(TooManyGlobsError):
        IgnoreRules(b"a\n" * 64_000, max_globs=1000)
    assert IgnoreRules(b"a\n" * 40_000, max_globs=1000).globs == 800  # nothing is left of them for the next folder
