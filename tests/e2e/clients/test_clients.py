"""Real editors and clients of others at the same cursors: the documents are those of our own plugin, or shorter."""

import pytest

from tests.e2e.clients.cursors import CURSORS
from tests.e2e.clients.emacs import Company, Eglot, LspMode
from tests.e2e.clients.helix import Helix
from tests.e2e.clients.jupyterlab import JupyterLab
from tests.e2e.clients.neovim import BuiltIn
from tests.e2e.clients.pages import CodeMirror, Monaco
from tests.e2e.clients.replayed import JetBrains, Sublime
from tests.e2e.clients.vim import VimAle
from tests.e2e.clients.vscode import VSCode

pytestmark = [pytest.mark.clients, pytest.mark.timeout(1800)]

# For each client how many cursors may get nothing: a text that starts with a line end has no first line for those that
# get one line, and ALE counts bytes where the protocol has UTF-16 units, so it asks after an emoji at another place.
CLIENTS = {
    BuiltIn: 0, Eglot: 0, Company: 0, LspMode: 0, Helix: 0, VimAle: 3, CodeMirror: 0, Monaco: 1, JetBrains: 0,
    Sublime: 0, JupyterLab: 0, VSCode: 0,
}  # fmt: skip


def test_our_own_plugin_accepts_the_whole_suggestion(documents_in_plugin):
    assert list(documents_in_plugin) == [cursor.accepted for cursor in CURSORS]


@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.__name__)
def test_a_client_accepts_what_our_own_plugin_accepts_or_a_part(kind, row_of):
    row = row_of(kind)
    documents = list(zip(row.verdicts, CURSORS, row.documents, strict=True))
    assert [one for one in documents if one[0] == "wrong"] == []
    assert row.verdicts.count("nothing") <= CLIENTS[kind], [one for one in documents if one[0] == "nothing"]
