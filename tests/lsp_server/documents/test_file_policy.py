"""Links and the rules of a workspace: what the name of a file or the place that it leads to forbids is forbidden."""

import os
import subprocess

import pytest

from lsp_server.documents.file_policy import FilePolicy
from lsp_server.empty_reason import EmptyReason
from tests.lsp_server.documents.test_workspace_feed import write


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repository"
    write(
        root, {".gitignore": "private/\n*.log\n", "private/a.py": "x", "package/b.py": "x", "package/private/c.py": "x"}
    )
    (root / ".git").mkdir()
    return root


def test_a_link_to_an_ignored_file_and_an_ignored_link_are_ignored(repository):
    (repository / "link.py").symlink_to(repository / "private" / "a.py")
    (repository / "folder").symlink_to("private")
    (repository / "b.log").symlink_to(repository / "package" / "b.py")
    (repository / "sound.py").symlink_to(repository / "package" / "b.py")
    policy = FilePolicy(repository)
    for name in ("link.py", "folder/a.py", "b.log"):
        assert policy.refusal(repository / name) is EmptyReason.IGNORED_FILE, name
    assert policy.refusal(repository / "sound.py") is None


def test_the_ignore_files_above_a_folder_that_is_opened_by_a_link_count(repository, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(repository / "package")
    policy = FilePolicy(link)
    assert policy.refusal(link / "private" / "c.py") is EmptyReason.IGNORED_FILE
    assert policy.refusal(link / "b.py") is None
    (repository / ".gitignore").write_text("b.py\n")
    assert policy.refresh(link / "b.py")
    assert policy.refusal(link / "b.py") is EmptyReason.IGNORED_FILE
    assert policy.refusal(link / "private" / "c.py") is None


def test_no_gitignore_includes_again_what_a_draftlineignore_above_it_ignores(tmp_path):
    write(tmp_path, {".draftlineignore": "*.md\n!open.md\n", "notes/.gitignore": "*\n!*.md\n", "notes/a/b.md": "x"})
    write(tmp_path, {"kept/.gitignore": "*.md\n", "kept/.draftlineignore": "!own.md\n"})
    policy = FilePolicy(tmp_path)
    for name in ("notes/a.md", "notes/a/b.md", "kept/a.md"):
        assert policy.refusal(tmp_path / name) is EmptyReason.IGNORED_FILE, name
    for name in ("notes/open.md", "kept/own.md", "notes.py"):
        assert policy.refusal(tmp_path / name) is None, name


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_draftlineignore_that_cannot_be_read_ignores_its_folder(tmp_path, caplog, kind):
    """What it names must not be read only because it is, for example, a link to the user's dotfiles."""
    write(tmp_path, {"rules": "b.py\n", "a/b.py": "x", "c.py": "x"})
    path = tmp_path / "a" / ".draftlineignore"
    match kind:
        case "link":
            path.symlink_to("../rules")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    policy = FilePolicy(tmp_path)
    assert policy.refusal(tmp_path / "a" / "b.py") is EmptyReason.IGNORED_FILE
    assert policy.refusal(tmp_path / "c.py") is None
    assert f"The rules in {path} cannot be used, so its whole folder is ignored: Is " in caplog.text


@pytest.mark.parametrize("where", ["secret-santa", "secrets/santa", "my-credentials/santa"])
def test_how_an_opened_folder_and_those_above_it_are_named_makes_no_file_secret(tmp_path, where):
    root = tmp_path / where
    write(root, {"package.json": "{}", "config/secrets.yml": "a: b", "config/secrets/a.yml": "a: b"})
    policy = FilePolicy(root, is_opened=True)
    assert policy.refusal(root / "package.json") is None
    for name in ("config/secrets.yml", "config/secrets/a.yml"):
        assert policy.refusal(root / name) is EmptyReason.SECRET_FILE, name
    loose = FilePolicy(root)
    assert loose.refusal(root / "package.json") is EmptyReason.SECRET_FILE
    (root / ".git").mkdir()
    assert FilePolicy(root).refusal(root / "package.json") is None
    assert FilePolicy(root / "config" / "secrets").refusal(root / "config" / "secrets" / "a.yml")


def test_a_folder_of_keys_above_an_opened_one_and_a_link_to_a_folder_of_secrets_are_secret(tmp_path):
    write(tmp_path, {".ssh/keys/config": "x", "secrets/notes.txt": "x", "project/a.py": "x"})
    opened = tmp_path / ".ssh" / "keys"
    assert FilePolicy(opened, is_opened=True).refusal(opened / "config") is EmptyReason.SECRET_FILE
    project = tmp_path / "project"
    (project / "linked").symlink_to(tmp_path / "secrets")
    policy = FilePolicy(project, is_opened=True)
    assert policy.refusal(project / "linked" / "notes.txt") is EmptyReason.SECRET_FILE


def git(folder, *words):
    names = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True)


def test_what_git_excludes_in_a_linked_work_tree_or_a_submodule_is_ignored(tmp_path):
    main, tree = tmp_path / "main", tmp_path / "tree"
    for repository in ("library", "main"):
        write(tmp_path / repository, {"a.py": "x"})
        git(tmp_path / repository, "init", "--quiet")
        git(tmp_path / repository, "add", ".")
        git(tmp_path / repository, "commit", "--quiet", "--message=a")
    git(main, "worktree", "add", "--quiet", str(tree))
    git(main, "submodule", "--quiet", "add", str(tmp_path / "library"), "library")
    write(main / ".git", {"info/exclude": "notes.md\n", "modules/library/info/exclude": "draft.py\n"})
    for root in (main, tree):
        policy = FilePolicy(root)
        assert policy.refusal(root / "notes.md") is EmptyReason.IGNORED_FILE
        assert policy.refusal(root / "draft.py") is None
    policy = FilePolicy(main / "library")
    assert policy.refusal(main / "library" / "draft.py") is EmptyReason.IGNORED_FILE
    assert policy.refusal(main / "library" / "notes.md") is None
    (main / ".git" / "info" / "exclude").write_text("draft.py\n")
    policy = FilePolicy(tree)
    assert policy.refusal(tree / "draft.py") is EmptyReason.IGNORED_FILE
    (main / ".git" / "info" / "exclude").write_text("")
    assert policy.refresh(tree / "draft.py")
    assert policy.refusal(tree / "draft.py") is None


@pytest.mark.parametrize(
    "text", ["gitdir: \0", "gitdir: missing", "gitdir: /\n", "gitdir: pipe", "nothing", "", "\xff" * 9]
)
def test_a_git_file_that_names_no_folder_of_git_changes_nothing_else(tmp_path, text):
    write(tmp_path, {".git": text, ".gitignore": "b.py\n", "a.py": "x"})
    os.mkfifo(tmp_path / "pipe")
    policy = FilePolicy(tmp_path)
    assert policy.refusal(tmp_path / "b.py") is EmptyReason.IGNORED_FILE
    assert policy.refusal(tmp_path / "a.py") is None
