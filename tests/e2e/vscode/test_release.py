"""The VS Code extension of dist/ on a machine without draftline: it installs its own wheel, and completes."""

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.sample_documents import MULTIPLY
from tests.e2e.vscode.code_window import CodeServer, CodeWindow

pytestmark = [pytest.mark.release, pytest.mark.timeout(3000)]

INSTALL_MS = 1_800_000


@pytest.fixture
def code_server(paths, dist, released, tmp_path):
    """A code-server with the extension, and a Python without draftline on its path."""
    base = Path(sys.base_prefix) / "bin"
    environment = {**released.variables, "PATH": f"{base}{os.pathsep}{os.defpath}", "VSCODE_CLI": "1"}
    server = CodeServer(paths, tmp_path / "code-server", environment)
    server.install(dist / "draftline.vsix")
    server.start({})
    yield server
    server.close()


def test_the_extension_installs_its_own_wheel_and_completes(code_server, browser, dist, tmp_path):
    file = tmp_path / "shop" / "orders.py"
    file.parent.mkdir()
    file.write_text(MULTIPLY)
    window = CodeWindow(browser, code_server, file)
    window.page.get_by_role("button", name="Install", exact=True).click()
    window.page.wait_for_selector("[aria-label*='draftline: ready']", timeout=INSTALL_MS)
    installed = "User/globalStorage/draftline.draftline/environment-*/lib/python*/site-packages/draftline-*.dist-info"
    [metadata] = (tmp_path / "code-server" / "data").glob(installed)
    [wheel] = dist.glob("*.whl")
    assert wheel.name in (metadata / "direct_url.json").read_text()
    window.press("Control+End")
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    window.press("Tab")
    window.wait_for_line("    return a * b")
