"""Errors that travel over HTTP: each has a status, a stable code and a sentence that says what to do."""

from __future__ import annotations

from starlette.responses import JSONResponse

from completion.errors import (
    CancelledError,
    ConfigurationError,
    DraftlineError,
    EngineUnavailableError,
    ModelError,
    PromptTooLongError,
)
from completion.host.state import HostPhase, HostStatus

_RETRY_AFTER_S = 1


class BodyInvalidError(DraftlineError):
    """The body is no JSON, or has unknown fields or values that cannot be used."""

    code = "invalid_request"


class UnauthorizedError(DraftlineError):
    """The bearer token is missing or wrong."""

    code = "unauthorized"


class BodyTooLargeError(DraftlineError):
    """The body is longer than the host reads."""

    code = "too_large"


class QueueFullError(DraftlineError):
    """More requests wait than the host keeps."""

    code = "queue_full"


class ConnectionsFullError(DraftlineError):
    """More TCP connections are open than the host keeps."""

    code = "connections_full"


class RequestSlowError(DraftlineError):
    """A request did not arrive in time."""

    code = "request_slow"


class EngineLoadingError(DraftlineError):
    """The model is not loaded yet."""

    code = "loading"


class EngineFailedError(DraftlineError):
    """The engine met an error that nobody foresaw; the log has its place in the code."""

    code = "internal"


_STATUS: tuple[tuple[type[DraftlineError], int], ...] = (
    (BodyInvalidError, 422),
    (ConfigurationError, 422),
    (PromptTooLongError, 422),
    (UnauthorizedError, 401),
    (BodyTooLargeError, 413),
    (QueueFullError, 429),
    (EngineLoadingError, 503),
    (EngineUnavailableError, 503),
    (ModelError, 503),
    (CancelledError, 409),
)


def error_body(error: DraftlineError) -> dict[str, str]:
    """The JSON object of an error."""
    return {"code": error.code, "message": str(error)}


def error_response(error: DraftlineError) -> JSONResponse:
    """An error as a whole reply."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    headers = {"Retry-After": str(_RETRY_AFTER_S)} if isinstance(error, EngineLoadingError | QueueFullError) else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(error_body(error), status_code=status, headers=headers)


def not_ready_error(status: HostStatus) -> DraftlineError:
    """Why a request cannot be served now."""
    if status.phase is HostPhase.LOADING:
        return EngineLoadingError(f"The model is loading ({status.percent:.0f} %): {status.sentence}")
    error = EngineUnavailableError(status.sentence)
    error.code = status.code or error.code
    return error
