"""The errors of each HTTP interface, in the form and with the status that its clients know."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from completion.errors import DraftlineError
from completion.host.errors import EngineLoadingError, QueueFullError, error_body

_RETRY_AFTER_S = 1
_OPENAI = ("/v1/completions", "/v1/chat/completions", "/beta/completions", "/v1/models")
_LLAMA_CPP = ("/infill", "/completion", "/props")
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    503: "unavailable_error",
}


def error_response(error: DraftlineError, path: str, status: int = 0) -> JSONResponse:
    """Return an error as a complete HTTP reply in the form of the interface at `path`; status 0 stands for its own."""
    shape, found = error_shape(error, path)
    status = status or found
    headers = {"Retry-After": str(_RETRY_AFTER_S)} if isinstance(error, EngineLoadingError | QueueFullError) else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(shape, status_code=status, headers=headers)


def error_shape(error: DraftlineError, path: str) -> tuple[dict[str, Any], int]:
    """Return an error as the JSON object of the interface at `path`, and its HTTP status there."""
    status = error.status
    if path.startswith("/api/"):
        return {"error": str(error)}, _outside(status)
    if path not in (*_LLAMA_CPP, *_OPENAI, "/v1/fim/completions"):
        return dict(error_body(error)), status
    status = _outside(status)
    body: dict[str, Any] = {"message": str(error), "type": _TYPES.get(status, "server_error")}
    if path in _LLAMA_CPP:
        return {"error": body | {"code": status}}, status
    body |= {"param": None, "code": error.code}
    return ({"error": body} if path in _OPENAI else {"object": "error"} | body), status


def _outside(status: int) -> int:
    """Return the status in the other servers' interfaces, which know no 422."""
    return 400 if status == 422 else status
