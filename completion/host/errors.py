"""Errors of the HTTP interface: each has an HTTP status, a stable code and a message that says what to do."""

from __future__ import annotations

from completion.errors import DraftlineError, EngineUnavailableError
from completion.host.state import HostPhase, HostStatus


class BodyInvalidError(DraftlineError):
    """The body is not JSON, or has unknown fields or invalid values."""

    code, status = "invalid_request", 422


class UnauthorizedError(DraftlineError):
    """The bearer token is missing or wrong."""

    code, status = "unauthorized", 401


class WebPageError(DraftlineError):
    """A web page may have sent a request that has no token."""

    code, status = "forbidden", 403


class NotFoundError(DraftlineError):
    """The host has no such address, or not with this method."""

    code, status = "not_found", 404


class BodyTooLargeError(DraftlineError):
    """The body exceeds the host's size limit."""

    code, status = "too_large", 413


class QueueFullError(DraftlineError):
    """The queue of requests that wait for the model is full."""

    code, status = "queue_full", 429


class StaleTextError(DraftlineError):
    """A client edits a text that the host does not have."""

    code, status = "stale_text", 409


class EngineLoadingError(DraftlineError):
    """The model is not loaded yet."""

    code, status = "loading", 503


class EngineFailedError(DraftlineError):
    """The engine failed with an unexpected exception; the log has the traceback."""

    code = "internal"

    @classmethod
    def of(cls, action: str, error: Exception) -> EngineFailedError:
        """Return the error of an action that ended with an exception, whose message may quote source text."""
        return cls(f"{action} failed with {type(error).__name__}. The engine's log has the traceback.")


def error_body(error: DraftlineError) -> dict[str, str]:
    """Return an error as a JSON object."""
    return {"code": error.code, "message": str(error)}


def require_ready(status: HostStatus) -> None:
    """Check that the model is ready.

    Raises:
        EngineLoadingError: The model is not loaded yet.
        EngineUnavailableError: The model failed to load, or the host is stopping.
    """
    if status.phase is HostPhase.LOADING:
        raise EngineLoadingError(f"The model is loading ({status.percent:.0f} %): {status.sentence}")
    if status.phase is not HostPhase.READY:
        error = EngineUnavailableError(status.sentence)
        error.code = status.code or error.code
        raise error
