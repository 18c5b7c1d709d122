"""Errors of the HTTP interface: each has an HTTP status, a stable code and a message that says what to do."""

from __future__ import annotations

from completion.errors import (
    CancelledError,
    ConfigurationError,
    ConversationError,
    DocumentRefusedError,
    DraftlineError,
    EngineUnavailableError,
    ModelError,
    PromptTooLongError,
)
from completion.host.state import HostPhase, HostStatus


class BodyInvalidError(DraftlineError):
    """The body is not JSON, or has unknown fields or invalid values."""

    code = "invalid_request"


class UnauthorizedError(DraftlineError):
    """The bearer token is missing or wrong."""

    code = "unauthorized"


class WebPageError(DraftlineError):
    """A web page may have sent a request that has no token."""

    code = "forbidden"


class NotFoundError(DraftlineError):
    """The host has no such address, or not with this method."""

    code = "not_found"


class BodyTooLargeError(DraftlineError):
    """The body exceeds the host's size limit."""

    code = "too_large"


class QueueFullError(DraftlineError):
    """The queue of requests that wait for the model is full."""

    code = "queue_full"


class StaleTextError(DraftlineError):
    """A client edits a text that the host does not have."""

    code = "stale_text"


class EngineLoadingError(DraftlineError):
    """The model is not loaded yet."""

    code = "loading"


class EngineFailedError(DraftlineError):
    """The engine failed with an unexpected exception; the log has the traceback."""

    code = "internal"

    @classmethod
    def of(cls, action: str, error: Exception) -> EngineFailedError:
        """Return the error of an action that ended with an exception, whose message may quote source text."""
        return cls(f"{action} failed with {type(error).__name__}. The engine's log has the traceback.")


_STATUS: tuple[tuple[type[DraftlineError], int], ...] = (
    (BodyInvalidError, 422),
    (ConfigurationError, 422),
    (ConversationError, 422),
    (PromptTooLongError, 422),
    (DocumentRefusedError, 422),
    (UnauthorizedError, 401),
    (WebPageError, 403),
    (NotFoundError, 404),
    (BodyTooLargeError, 413),
    (QueueFullError, 429),
    (EngineLoadingError, 503),
    (EngineUnavailableError, 503),
    (ModelError, 503),
    (CancelledError, 409),
    (StaleTextError, 409),
)


def error_body(error: DraftlineError) -> dict[str, str]:
    """Return an error as a JSON object."""
    return {"code": error.code, "message": str(error)}


def status_of(error: DraftlineError) -> int:
    """Return the HTTP status of an error in draftline's own interface."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


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
