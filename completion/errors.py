"""The exception tree: every error that draftline raises on purpose."""

from __future__ import annotations


class DraftlineError(Exception):
    """Base of all errors raised on purpose.

    The message says in one or two sentences what happened, with the value, and what to do.

    Attributes:
        code: Stable, machine-readable name, used in HTTP errors and status notifications.
        status: HTTP status in draftline's own interface.
    """

    code, status = "draftline_error", 500

    @property
    def logged(self) -> str:
        """The message as a log has it: without what another program said, which may quote source text."""
        return str(self)


class ConfigurationError(DraftlineError):
    """A setting has a value that cannot be used."""

    code, status = "configuration", 422


class ModelError(DraftlineError):
    """A model cannot be found, read, verified or run."""

    code, status = "model", 503


class ModelNotFoundError(ModelError):
    """No source has the requested model."""

    code = "model_not_found"


class ModelDamagedError(ModelError):
    """A model file is truncated or differs from its checksum."""

    code = "model_damaged"


class UnsupportedModelError(ModelError):
    """The model's family or its fill-in-the-middle format is unknown."""

    code = "model_unsupported"


class TorchMissingError(ModelError):
    """The model or the backend needs torch, which a CPU installation does not have."""

    code = "torch_missing"


class StorageError(DraftlineError):
    """The disk is full, or a folder cannot be written to."""

    code = "storage"


class PermissionsError(DraftlineError):
    """A folder, socket or token file belongs to another user, or other users can access it."""

    code = "permissions"


class EngineUnavailableError(DraftlineError):
    """The engine host could not be started or does not answer."""

    code, status = "engine_unavailable", 503


class EngineSilentError(EngineUnavailableError):
    """The engine host did not answer in time. It may live, and may have got the message."""


class RemoteServerError(DraftlineError):
    """The model server of the user's settings cannot be reached, refuses a request, or fails to answer it.

    In a message, what the server says comes last, after a colon.
    """

    code = "remote_server"

    @property
    def logged(self) -> str:
        """The message without what the server says."""
        return str(self).partition(": ")[0]


class RemoteInterruptedError(RemoteServerError):
    """The model server ended or failed within its reply; another server at the same address may answer."""


class PromptTooLongError(DraftlineError):
    """A prompt does not fit the KV session, even after trimming."""

    code, status = "prompt_too_long", 422


class ConversationError(DraftlineError):
    """The model has no chat template, or its template refuses the conversation."""

    code, status = "conversation", 422


class DocumentRefusedError(DraftlineError):
    """A document is refused, because earlier hosts ended while they processed it."""

    code, status = "document_refused", 422


class ParseLimitError(DraftlineError):
    """Parsing a text took more time or memory than is allowed."""

    code = "parse_limit"


class CancelledError(DraftlineError):
    """The request was cancelled: its client closed the stream or sent a newer request."""

    code, status = "cancelled", 409


class GrammarError(DraftlineError):
    """A grammar cannot be used for a request."""

    code = "grammar"


class GrammarUnsupportedError(GrammarError):
    """A grammar package's tables have an unknown version."""

    code = "grammar_unsupported"


class GrammarBoundError(GrammarError):
    """A text needs more parse stacks, or a longer lexeme, than the constraint supports."""

    code = "grammar_bound"


class PrefixTooLargeError(GrammarBoundError):
    """The text before the cursor is longer than the constraint reads for one request."""

    code = "grammar_prefix_too_large"
