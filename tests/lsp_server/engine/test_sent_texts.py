"""What is sent of an open file: its whole text once, then only what changed, whatever happens to the host."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.host.errors import StaleTextError
from completion.host.open_texts import MAX_TEXTS, OpenTexts
from completion.host.wire import encode
from completion.request import Closing, WorkspaceFile, WorkspaceUpdate
from lsp_server.engine.client import EngineClient, SentTexts
from lsp_server.engine.launcher import EngineOptions

steps = st.lists(st.tuples(st.sampled_from("ab"), st.text("xyé\n", max_size=9), st.booleans()), max_size=8)


def update(path, text, is_open=True):
    return WorkspaceUpdate("w", (WorkspaceFile(path, text, is_open),))


@given(steps, st.sets(st.integers(0, 7)))
def test_the_host_gets_every_text_as_it_is_and_asks_for_the_whole_one_that_it_lost(changes, restarts):
    sent, host = SentTexts(), OpenTexts()
    for number, (path, text, is_open) in enumerate(changes):
        if number in restarts:
            host = OpenTexts()
        whole = update(path, text, is_open)
        try:
            got = host.whole(sent.shortened(whole))
        except StaleTextError:
            sent.forget(["w"])
            got = host.whole(sent.shortened(whole))
        assert got == whole


def test_a_key_in_a_file_of_300_kb_sends_less_than_200_bytes():
    sent = SentTexts()
    text = "value = read(stream)\n" * 15_000
    assert len(encode(sent.shortened(update("package/module.py", text)))) > 300_000
    typed = text[:150_000] + "x" + text[150_000:]
    assert len(encode(sent.shortened(update("package/module.py", typed)))) <= 200


def test_a_host_keeps_a_bounded_number_of_texts():
    host = OpenTexts()
    for number in range(MAX_TEXTS + 1):
        host.whole(SentTexts().shortened(update(f"{number}.py", "x")))
    sent = SentTexts()
    sent.shortened(update("0.py", "x"))
    with pytest.raises(StaleTextError):
        host.whole(sent.shortened(update("0.py", "xy")))


async def test_the_texts_of_a_closed_workspace_are_not_kept():
    client = EngineClient(EngineOptions())
    client._sent.shortened(update("a.py", "x"))
    await client.forget(Closing(workspaces=("another",)))
    assert client._sent.shortened(update("a.py", "xy")).edited
    await client.forget(Closing(workspaces=("w",)))
    assert not client._sent.shortened(update("a.py", "xyz")).edited
