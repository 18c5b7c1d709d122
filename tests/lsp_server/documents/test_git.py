"""What git ignores is ignored, and nothing else: its configuration, its index, and inner repositories count.

`python -m tests.lsp_server.documents.test_git --trees 10000` compares more random trees with git.
"""

import argparse
import asyncio
import os
import random
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from lsprotocol import types

from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.file_policy import FilePolicy
from lsp_server.documents.rules.git import Git, listed
from lsp_server.documents.workspace_feed import WorkspaceFeed
from lsp_server.documents.workspace_folders import Folder, WorkspaceFolders
from lsp_server.documents.workspace_search import search
from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.table import Settings
from lsp_server.workspace_reader import identity_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

NAMES = ["a", "b.py", "C.py", "c.py", "build", "x.log", "é.py", "a b.py", "[x].py", ":(top).py", "doc", "deep"]
RULES = [
    "*.log",
    "build/",
    "/a",
    "!a/b.py",
    "*.py",
    "!b.py",
    "doc/**/x.log",
    "C.py",
    "c.py",
    "**/deep",
    "\\[x\\].py",
    "é.py",
]


def git(folder, *words, stdin=""):
    own = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "advice.addEmbeddedRepo=false")
    done = subprocess.run(["git", *own, *words], cwd=folder, check=False, capture_output=True, text=True, input=stdin)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def write(root, *names, text="x"):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "--quiet")
    return root


def ignored(root, *names):
    policy = FilePolicy(root, is_opened=True)
    policy.ask([root / name for name in names])
    return [name for name in names if policy.refusal(root / name) is EmptyReason.IGNORED_FILE]


def test_the_users_own_ignore_files_count(repository, tmp_path):
    write(repository, "a.py", "notes.md", "draft.py")
    write(tmp_path / "home", ".config/git/ignore", text="notes.md\n")
    assert ignored(repository, "a.py", "notes.md", "draft.py") == ["notes.md"]
    write(tmp_path / "home", "excludes", text="draft.py\n")
    git(repository, "config", "--global", "core.excludesFile", str(tmp_path / "home" / "excludes"))
    assert ignored(repository, "a.py", "notes.md", "draft.py") == ["draft.py"]


def test_case_counts_as_git_says(repository):
    write(repository, ".gitignore", text="Private.py\n")
    write(repository, "private.py")
    for ignores_case in ("true", "false"):
        git(repository, "config", "core.ignoreCase", ignores_case)
        assert ignored(repository, "private.py") == ["private.py"] * (ignores_case == "true")


def test_a_tracked_file_in_an_ignored_folder_is_read_until_it_is_no_longer_tracked(repository):
    write(repository, ".gitignore", text="vendor/\n")
    write(repository, "vendor/ours.py", "vendor/theirs.py")
    policy = FilePolicy(repository, is_opened=True)
    assert policy.refusal(repository / "vendor/ours.py") is EmptyReason.IGNORED_FILE
    git(repository, "add", "--force", "vendor/ours.py")
    assert policy.refusal(repository / "vendor/ours.py") is None
    assert policy.refusal(repository / "vendor/theirs.py") is EmptyReason.IGNORED_FILE
    git(repository, "rm", "--quiet", "--cached", "vendor/ours.py")
    assert policy.refusal(repository / "vendor/ours.py") is EmptyReason.IGNORED_FILE


def test_what_draftlines_own_ignore_file_says_counts_more_than_git(repository):
    write(repository, ".gitignore", text="generated/\n")
    write(repository, ".draftlineignore", text="!generated/\ngenerated/big.py\ntracked.py\n")
    write(repository, "generated/a.py", "generated/big.py", "tracked.py")
    git(repository, "add", "tracked.py")
    assert ignored(repository, "generated/a.py", "generated/big.py", "tracked.py") == ["generated/big.py", "tracked.py"]


def test_an_inner_repository_decides_about_its_own_files(repository):
    write(repository, "inner/.gitignore", text="b.py\n")
    write(repository, "inner/a.py", "inner/b.py")
    git(repository / "inner", "init", "--quiet")
    assert ignored(repository, "inner/a.py", "inner/b.py") == ["inner/b.py"]
    assert sorted(listed(repository)) == ["inner/.gitignore", "inner/a.py"]


def test_a_search_may_find_further_inner_repositories_while_a_request_looks_at_those_that_are_known(
    repository, monkeypatch
):
    for name in ("first", "second"):
        write(repository, f"{name}/a.py")
        git(repository / name, "init", "--quiet")
    policy, looks = FilePolicy(repository, is_opened=True), []
    policy.refusal(repository / "first/a.py")

    def looked_at(path):  # as long as it takes, a search on another thread goes on
        looks.append(path)
        if path == repository / "first/.git/index" and looks.count(path) == 1:
            policy.refusal(repository / "second/a.py")
        return identity_of(path)

    with monkeypatch.context() as patched:
        patched.setattr("lsp_server.documents.rules.repository.identity_of", looked_at)
        before = policy.stamp()
    assert policy.stamp() != before


def test_no_program_that_a_repository_names_is_run(repository, tmp_path):
    script = tmp_path / "monitor"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path / 'executed'}\n")
    script.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(script))
    write(repository, "a.py")
    assert ignored(repository, "a.py") == []
    assert listed(repository) == ["a.py"]
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("variable", ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"])
def test_an_editor_that_git_itself_has_started_asks_about_its_own_folder(repository, tmp_path, monkeypatch, variable):
    write(repository, ".gitignore", text="b.py\n")
    write(repository, "b.py")
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert ignored(repository, "b.py") == ["b.py"]


@pytest.fixture
def other_git(tmp_path, monkeypatch):
    """Return a function that puts a shell script in place of git, in which `$real` is git and `$pipe` names a pipe."""

    def put(script):
        (tmp_path / "bin").mkdir()
        os.mkfifo(tmp_path / "pipe")
        program = tmp_path / "bin" / "git"
        program.write_text(f'#!/bin/bash\nreal="{shutil.which("git")}" pipe="{tmp_path / "pipe"}"\n{script}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
        return tmp_path / "pipe"

    return put


def test_a_slow_git_is_waited_for_and_one_that_hangs_is_ended(repository, other_git, caplog):
    write(repository, ".gitignore", text="b.py\n")
    write(repository, "b.py")
    other_git('exec 3<> "$pipe"\nread -r -t 0.5 -u 3 _\nexec "$real" "$@"')
    assert ignored(repository, "b.py") == ["b.py"]
    assert listed(repository) == [".gitignore"]
    assert "git did not answer" not in caplog.text
    assert listed(repository, lambda: False) is None


def test_git_that_cannot_say_is_asked_once(repository, tmp_path, other_git):
    write(repository, "b.py")
    other_git(f'echo asked >> "{tmp_path / "log"}"\nexit 128')
    says = Git(repository, repository / ".git" / "index")
    assert [says.ignores(repository / "b.py") for _ in range(3)] == [None] * 3
    assert (tmp_path / "log").read_text() == "asked\n"
    says.forget()
    assert says.ignores(repository / "b.py") is None
    assert (tmp_path / "log").read_text() == "asked\n" * 2


def test_an_answer_that_was_on_its_way_when_the_rules_were_dropped_counts_no_more(repository, other_git):
    write(repository, "b.py")
    pipe = other_git('answer=$("$real" "$@" | base64)\n[ -e "$pipe" ] && read -r _ < "$pipe"\nbase64 -d <<< "$answer"')
    says = Git(repository, repository / ".git" / "index")
    asking = threading.Thread(target=says.ask, args=([repository / "b.py"],))
    asking.start()
    with pipe.open("w"):  # which waits until git has answered
        write(repository, ".gitignore", text="b.py\n")
        says.forget()
        pipe.unlink()
    asking.join()
    assert says.ignores(repository / "b.py")


def test_git_that_could_not_say_once_is_asked_again_before_files_are_sent(repository, tmp_path, other_git):
    write(tmp_path / "home", ".config/git/ignore", text="notes.md\n")
    write(repository, "notes.md")
    other_git('[ -e "$pipe" ] && rm "$pipe" && exit 128\nexec "$real" "$@"')
    policy = FilePolicy(repository, is_opened=True)
    assert policy.refusal(repository / "notes.md") is None
    policy.ask([repository / "notes.md"])
    assert policy.refusal(repository / "notes.md") is EmptyReason.IGNORED_FILE


@pytest.mark.parametrize("is_listed", [True, False])
def test_the_files_of_a_root_in_another_one_are_found_once(repository, is_listed):
    if not is_listed:
        shutil.rmtree(repository / ".git")
    write(repository, "a.py", "b.py", "inner/c.py", "inner/d.py")
    for name in ("a.py", "b.py"):
        os.utime(repository / name, (0, 0))  # the oldest files, which a search leaves out first
    roots = {repository, repository / "inner"}
    policies = {Folder(path.as_uri(), path, path.name): FilePolicy(path, is_opened=True) for path in roots}
    found = search(policies, set(), roots, 4, lambda: True)
    assert sorted(file.name for file in found) == ["a.py", "b.py", "c.py", "d.py"]


async def test_the_event_loop_waits_for_git_neither_when_a_file_is_opened_nor_when_the_index_changed(
    repository, other_git, monkeypatch
):
    write(repository, ".gitignore", text="b.py\n")
    write(repository, "b.py", "c.py")
    monkeypatch.setattr("lsp_server.documents.rules.git._ANSWER_S", 60.0)
    folders, documents, sent = WorkspaceFolders(), DocumentStore(), asyncio.Queue()
    folders.add([types.WorkspaceFolder(repository.as_uri(), "project")])
    feed = WorkspaceFeed(folders, documents, sent.put, lambda _uri: Settings(), pause_s=0)
    document = documents.open(types.TextDocumentItem((repository / "b.py").as_uri(), "python", 1, "x"))
    git(repository, "add", "c.py")
    gate = other_git('[ -e "$pipe" ] && read -r _ < "$pipe"\nexec "$real" "$@"')
    opened = []

    def open_gate():
        opened.append(os.open(gate, os.O_RDWR))  # who waits for it reads a line
        os.write(opened[-1], b"go\n" * 20)
        gate.unlink()

    feed.opened(document)  # returns while git waits for the gate
    for refusal in (EmptyReason.IGNORED_FILE, None):
        consulted = asyncio.ensure_future(feed.consult(document.uri))
        asyncio.get_running_loop().call_soon(open_gate)  # after the consultation has begun
        await consulted
        with monkeypatch.context() as patched:
            patched.setenv("PATH", str(repository / "nothing"))  # what is known needs no git
            assert feed.refusal_of(document.uri) is refusal
        git(repository, "add", "--force", "b.py")  # git ignores no file of its index
        os.mkfifo(gate)
    await feed.close()
    for descriptor in opened:
        os.close(descriptor)


def random_tree(root, rng, names):
    """Make random files and ignore files in a folder; return the files and those that shall be tracked."""
    files = []
    for _ in range(rng.randrange(3, 12)):
        name = "/".join(rng.choices(names, k=rng.randrange(1, 4)))
        folders = [str(parent) for parent in Path(name).parents]
        if name not in files and not any(one in folders or one.startswith(f"{name}/") for one in files):
            write(root, name)
            files.append(name)
    for folder in sorted({Path(name).parent for name in files if rng.random() < 0.5}):
        write(root / folder, ".gitignore", text="\n".join(rng.sample(RULES, rng.randrange(1, 5))))
    return files, [name for name in files if rng.random() < 0.2]


def random_repository(root, rng, trees):
    """Return the files of a new repository with random configuration and trees: its top folder and some below.

    A tree in it takes a hundredth of the time of a repository: most of that is git's start.
    """
    git(root.parent, "init", "--quiet", "--template=", root.name)
    ignores_case = rng.random() < 0.5
    choices = [name for name in NAMES if name != "c.py" or not ignores_case]  # no disk that ignores case has both
    files, tracked = [], []
    for number in range(trees):
        below = f"tree{number}/" if number else ""
        for found, names in zip((files, tracked), random_tree(root / below, rng, choices), strict=True):
            found += [below + name for name in names]
    write(root, ".git/info/exclude", text="\n".join(rng.sample(RULES, rng.randrange(2))))
    if tracked:
        named = ("--pathspec-from-file=-", "--pathspec-file-nul")
        git(root, "--literal-pathspecs", "add", "--force", *named, stdin="\0".join(tracked))
    git(root, "config", "core.ignoreCase", str(ignores_case).lower())
    return files


def differences(trees, seed, together=1):
    """Return the files of random trees that are ignored here and not by git, or the other way round.

    Args:
        trees: Number of trees.
        seed: Number that repeats the same trees.
        together: Number of trees in one repository.
    """
    rng, found = random.Random(seed), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(0, trees, together):
            root = Path(os.path.realpath(folder)) / str(number)
            files = random_repository(root, rng, min(together, trees - number))
            seen = git(root, "ls-files", "-z", "-co", "--exclude-standard").split("\0")
            own = set(files) - set(ignored(root, *files))
            found += [(number, name) for name in own ^ set(seen).intersection(files)]
            shutil.rmtree(root)
    return found


def test_random_trees_are_seen_as_git_sees_them():
    assert differences(trees=10, seed=1) == []
    assert differences(trees=200, seed=1, together=50) == []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=2)
    chosen = parser.parse_args()
    found = differences(chosen.trees, chosen.seed, together=50)
    for number, name in found:
        print(f"repository {number}: {name}")
    print(f"{len(found)} files of {chosen.trees} trees differ from git")
