"""docs/editors.md names each client that the tests run, and its set-ups are those that the tests type."""

import pytest

from tests.e2e.clients.documented import set_up
from tests.e2e.clients.emacs import Company, Eglot, LspMode
from tests.e2e.clients.forced_host import REPOSITORY
from tests.e2e.clients.helix import CONFIG
from tests.e2e.clients.test_clients import CLIENTS
from tests.e2e.clients.vim import DEFINE


@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.__name__)
def test_the_table_has_a_row_for_each_client(kind):
    page = (REPOSITORY / "docs" / "editors.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| [{kind.name.removesuffix(' (replayed)')}](")]
    assert kind.shows in row
    assert ("replayed" in row) == kind.name.endswith("(replayed)")


def test_the_set_ups_start_the_server():
    for text in (Eglot.init, Company.init, LspMode.init, CONFIG, DEFINE, set_up("Neovim", "lua", 1)):
        assert "lsp_server" in text
        assert '"python"' not in text.replace('name = "python"', "")
