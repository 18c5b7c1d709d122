"""Named points of the server's and the host's life at which an attack stops or kills the process."""

SERVER_POINTS = (
    "lsp_server.server:DraftlineServer.remember",
    "lsp_server.session:Session.start",
    "lsp_server.session:Session.close",
    "lsp_server.changes:DocumentChanges.open",
    "lsp_server.changes:DocumentChanges.change",
    "lsp_server.changes:DocumentChanges.close",
    "lsp_server.session:Session.inline_completion",
    "lsp_server.session:Session.accepted",
    "lsp_server.session:Session._send_partial",
    "lsp_server.session:Session._note_answer",
    "lsp_server.engine.connector:HostConnector._try_lease",
    "lsp_server.engine.connector:HostConnector._disconnect",
    "lsp_server.engine.http:EngineConnection.complete",
    "lsp_server.engine.launcher:HostLauncher._start",
    "lsp_server.telemetry.writer:StoreWriter.write",
    "lsp_server.telemetry.event_queue:Telemetry.close",
    "lsp_server.telemetry.store:_migrate",
    "lsp_server.documents.workspace_outbox:WorkspaceOutbox._next_batch",
)
HOST_POINTS = (
    "completion.host.process.lifetime:_serve_locked",
    "completion.host.process.fatal_work:FatalWork._write",
    "completion.host.process.sockets:own_socket",
    "completion.host.server:HostServer.run",
    "completion.host.server:HostServer._note_loaded",
    "completion.host.server:HostServer.stop",
    "completion.host.state:HostState.stopping",
    "completion.host.services:RequestStream.submit",
    "completion.host.services:RequestStream._deliver",
    "completion.host.services:RequestStream.close",
    "completion.host.job_queue:JobQueue.next",
    "completion.host.worker:EngineWorker._serve",
    "completion.host.worker:EngineWorker.stop",
)
ENGINE_POINTS = (
    "completion.completer:Completer.update_workspace",
    "completion.engine:Engine._plan",
    "completion.engine:Engine.close",
    "completion.cache.kv_session:KVSession.prepare",
    "completion.decoding.task:Task.finish",
    "completion.engine:Engine.forget",
    "drafting.calibration:save_calibration",
)
"""Points that only a host with a real model passes."""
