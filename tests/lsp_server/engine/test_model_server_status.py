"""The status of an engine whose model server fails, and what follows when it serves again."""

from lsp_server.engine.launcher import EngineStatus
from lsp_server.engine.link import EngineLink
from lsp_server.status import LoadingProgress, StatusReporter


def test_a_failing_model_server_is_an_error_in_the_status_and_sends_no_workspace_again():
    sent, ready = [], []
    link = EngineLink(
        StatusReporter(lambda _method, params: sent.append((params["kind"], params["message"]))),
        lambda: LoadingProgress(None),
        lambda: ready.append(1),
    )
    goes = EngineStatus("ready", 100, "Ready. The text around the cursor goes to https://gpu.example.", "m", "d")
    fails = EngineStatus("ready", 100, "No server answers at https://gpu.example.", "m", "d", "remote_server")
    for status in (goes, fails, goes):
        link._note(status)
    assert sent == [("ready", goes.sentence), ("error", fails.sentence), ("ready", goes.sentence)]
    assert len(ready) == 1
    link._note(EngineStatus())
    link._note(goes)
    assert len(ready) == 2
