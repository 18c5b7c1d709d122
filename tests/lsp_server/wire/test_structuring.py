"""What a malformed message costs: its faults are not described one by one."""

import pytest
from pygls.exceptions import JsonRpcInvalidParams

from lsp_server.server import create_server


def test_a_list_of_wrong_elements_is_given_up_at_the_first():
    params = {"notebookDocument": {"uri": "file:///n"}, "cellTextDocuments": [1] * 3000}
    with pytest.raises(JsonRpcInvalidParams) as refused:
        create_server().protocol.structure_message(
            {"jsonrpc": "2.0", "method": "notebookDocument/didClose", "params": params}
        )
    cause = refused.value
    while cause is not None:
        assert not isinstance(cause, BaseExceptionGroup)
        cause = cause.__cause__
