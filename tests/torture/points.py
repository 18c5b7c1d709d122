"""Named points of the server's and the host's life at which an attack stops or kills the process."""

SERVER_POINTS = (
    "lsp_server.server:DraftlineServer.remember",
    "lsp_server.session:Session.start",
    "lsp_server.session:Session.close",
    "lsp_server.session:Session.open_document",
    "lsp_server.session:Session.change_document",
    "lsp_server.session:Session.close_document",
    "lsp_server.session:Session.inline_completion",
    "lsp_server.session:Session.accepted",
    "lsp_server.session:Session._send_partial",
    "lsp_server.session:Session._note_answer",
    "lsp_server.engine_client:EngineClient._try_lease",
    "lsp_server.engine_client:EngineClient._disconnect",
    "lsp_server.engine_http:EngineConnection.complete",
    "lsp_server.engine_launcher:HostLauncher._start",
    "lsp_server.telemetry:Telemetry._write",
    "lsp_server.telemetry:Telemetry.close",
    "lsp_server.telemetry_schema:_migrate",
    "lsp_server.workspace_files:WorkspaceFeed._next_batch",
)
HOST_POINTS = (
    "completion.host_process:_serve_locked",
    "completion.host_sockets:unix_socket",
    "completion.host_server:HostServer.run",
    "completion.host_server:HostServer._note_loaded",
    "completion.host_server:HostServer.stop",
    "completion.host_state:HostState.stopping",
    "completion.host_stream:CompletionStream.submit",
    "completion.host_stream:CompletionStream._deliver",
    "completion.host_stream:CompletionStream.close",
    "completion.host_worker:EngineWorker._next",
    "completion.host_worker:EngineWorker._serve",
    "completion.host_worker:EngineWorker.stop",
)
ENGINE_POINTS = (
    "completion.engine:Engine.update_workspace",
    "completion.engine:Engine._plan",
    "completion.engine:Engine.close",
    "completion.kv_session:KVSession.prepare",
    "completion.task:Task.finish",
    "drafting.learned_state:LearnedState.save",
    "drafting.learned_state:_encode",
)
"""Points that only a host with a real model passes."""
