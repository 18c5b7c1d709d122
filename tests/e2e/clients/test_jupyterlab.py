"""JupyterLab's cells are one document: a suggestion in one knows the cells above as they are now."""

import pytest

from tests.e2e.clients.cursors import CURSORS
from tests.e2e.clients.jupyterlab import GHOST, JupyterLab, notebook

pytestmark = [pytest.mark.clients, pytest.mark.timeout(1800)]


@pytest.fixture
def lab(forced_host, tmp_path):
    """JupyterLab with a language server that has its engine."""
    client = JupyterLab(tmp_path, forced_host.environment)
    try:
        client.wait_until_ready()
        yield client
    finally:
        client.close()


def type_and_accept(lab, keys):
    """Type into the cell until there is a suggestion; accept and return it."""
    lab.page.keyboard.type(keys)
    shown = lab.ghost()
    lab.page.keyboard.press("Tab")
    lab.page.wait_for_selector(GHOST, state="detached")
    return shown


def test_a_cell_gets_what_is_typed_for_in_our_own_plugin(lab, tmp_path, documents_in_plugin):
    (number,) = [index for index, one in enumerate(CURSORS) if one.text == "h.join(a, b)"]
    cursor = CURSORS[number]
    notebook(tmp_path / "one.ipynb", cursor.before[:-1] + cursor.after)
    lab.show("one.ipynb", cell=0, offset=len(cursor.before) - 1)
    assert type_and_accept(lab, cursor.before[-1]) == cursor.text
    assert lab.cells() == [documents_in_plugin[number]]


def test_a_function_that_is_renamed_in_one_cell_has_its_new_name_in_the_next(lab, tmp_path):
    notebook(tmp_path / "two.ipynb", "def first(x):\n    return x", "value =", "# nothing")
    lab.show("two.ipynb", cell=1)
    assert type_and_accept(lab, " ") == "first()"
    lab.show("two.ipynb", cell=0, offset=len("def first"))
    lab.page.keyboard.type("_one")
    lab.show("two.ipynb", cell=1)
    for _ in "first()":
        lab.page.keyboard.press("Backspace")
    lab.page.keyboard.press("Backspace")
    assert type_and_accept(lab, " ") == "first_one()"
    assert lab.cells() == ["def first_one(x):\n    return x", "value = first_one()", "# nothing"]


def test_cells_that_are_added_removed_and_moved_are_the_document(lab, tmp_path):
    notebook(tmp_path / "three.ipynb", "def first(x):\n    return x", "value =")
    lab.show("three.ipynb", cell=1)
    assert type_and_accept(lab, " ") == "first()"
    insert = "(cell) => window.shown.model.sharedModel.insertCell(1, cell)"
    lab.page.evaluate(insert, {"cell_type": "code", "source": "def added(): 1"})
    lab.page.evaluate("() => window.shown.model.sharedModel.deleteCell(0)")
    lab.show("three.ipynb", cell=1)
    for _ in " first()":
        lab.page.keyboard.press("Backspace")
    assert type_and_accept(lab, " ") == "added()"


def test_only_who_has_the_token_gets_a_language_server(lab):
    answers = lab.page.evaluate("""async () => {
      const open = (url) => new Promise((resolve) => {
        const socket = new WebSocket(url);
        socket.onopen = () => resolve("open");
        socket.onclose = () => resolve("closed");
      });
      const { wsUrl, token } = window.jupyterapp.serviceManager.serverSettings;
      const url = wsUrl.replace("127.0.0.1", "localhost");
      return [await open(`${url}draftline`), await open(`${wsUrl}draftline?token=${token}`)];
    }""")
    assert answers == ["closed", "open"]
