"""One identity of a document: every spelling of its URI is the same document, folder and key, here and in the host."""

import os
import re
import string
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.wire.document_uri import Spellings, identity_of_uri, path_of

VSCODE_KEEPS = string.ascii_letters + string.digits + "/-._~"
"""Characters that VS Code's `Uri.toString` leaves as they are in a path."""
NEOVIM_KEEPS = VSCODE_KEEPS + "!$&'()*+,;=:@"
"""Those that Neovim's `vim.uri_from_fname` leaves as they are."""

names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60).filter(
    lambda name: name not in (".", "..")
)


def spellings(path):
    """Return how VS Code and Neovim spell a path, with digits of escapes in both cases."""
    uris = [f"file://{quote(path, safe=keeps)}" for keeps in (VSCODE_KEEPS, NEOVIM_KEEPS)]
    return [*uris, re.sub("%..", lambda escape: escape[0].lower(), uris[0])]


@pytest.mark.parametrize("character", [*sorted(set(NEOVIM_KEEPS) - set(VSCODE_KEEPS)), " ", "%", "#", "?", "é", "漢"])
def test_a_document_that_two_editors_spell_differently_is_one(character):
    path = f"/project/a{character}b.py"
    identities = {identity_of_uri(uri) for uri in spellings(path)}
    assert len(identities) == 1
    assert path_of(identities.pop()) == Path(path)


@given(st.lists(names, min_size=1, max_size=4))
def test_every_spelling_of_a_path_has_one_identity_and_that_is_its_own(parts):
    path = "/" + "/".join(parts)
    found = {identity_of_uri(uri) for uri in spellings(path)}
    assert found == {Path(path).as_uri()}
    assert identity_of_uri(*found) in found
    assert path_of(*found) == Path(path)


@given(st.binary(min_size=1, max_size=8))
def test_no_uri_raises_and_the_identity_is_stable(raw):
    for uri in (raw.decode("utf-8", "surrogateescape"), "file:///" + raw.decode("latin-1"), f"git:/a?{raw!r}"):
        assert identity_of_uri(identity_of_uri(uri)) == identity_of_uri(uri)


def test_what_is_on_no_disk_has_one_identity_too_and_delimiters_stay_apart():
    assert identity_of_uri("git:/a/%28b%29.py?x") == identity_of_uri("GIT:/a/(b).py?x") == "git:/a/(b).py?x"
    assert identity_of_uri("vscode-notebook-cell:/n%23.ipynb#a") != identity_of_uri("vscode-notebook-cell:/n#.ipynb#a")


def test_a_folder_is_one_with_and_without_a_trailing_slash_and_escapes():
    folders = WorkspaceFolders()
    folders.add([types.WorkspaceFolder("file:///work/c%2B%2B/", "one"), types.WorkspaceFolder("file:///work/c++", "")])
    assert [folder.uri for folder in folders] == [Path("/work/c++").as_uri()]
    folders.remove([types.WorkspaceFolder("file://localhost/work/c%2b%2b", "")])
    assert list(folders) == []


def test_a_link_stays_as_it_was_opened(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert path_of((tmp_path / "link" / "a.py").as_uri()) == tmp_path / "link" / "a.py"


def test_names_count_as_the_folder_lists_them_where_the_disk_ignores_case(tmp_path):
    (tmp_path / "Folder").mkdir()
    (tmp_path / "Folder" / "File.py").touch()
    ignores_case = (tmp_path / "fOLDER").exists()
    found = path_of((tmp_path / "FOLDER" / "file.py").as_uri())
    listed = tmp_path / "Folder" / "File.py"
    assert (found == listed) is ignores_case
    assert path_of(listed.as_uri()) == listed


def test_two_files_whose_names_differ_in_case_only_stay_two_although_they_are_one_inode(tmp_path):
    (tmp_path / "a.py").touch()
    if (tmp_path / "A.PY").exists():
        pytest.skip("the disk ignores case")
    os.link(tmp_path / "a.py", tmp_path / "A.PY")
    assert {path_of((tmp_path / name).as_uri()).name for name in ("a.py", "A.PY")} == {"a.py", "A.PY"}


def test_a_client_gets_its_own_spelling_back():
    spelled = Spellings()
    message = {"params": {"textDocument": {"uri": "FILE:///a/(b).py"}, "text": "uri"}}
    inside = spelled.inward(message)
    assert inside["params"]["textDocument"]["uri"] == Path("/a/(b).py").as_uri()
    assert spelled.outward(inside) == message


@pytest.mark.parametrize("count", [1_500, 100_000])
def test_a_uri_with_very_many_parts_is_its_own_identity(count):
    uri = "file://" + "/a" * count
    assert identity_of_uri(uri) == uri
