"""The one exception tree: every error that draftline raises on purpose, with a message that says what to do."""

from __future__ import annotations


class DraftlineError(Exception):
    """Base of all errors raised on purpose.

    The message is one or two plain sentences: what was wrong, with which value, and what to do about it.

    Attributes:
        code: A stable, machine-readable name, used in HTTP errors and status notifications.
    """

    code = "draftline_error"


class ConfigurationError(DraftlineError):
    """A setting has a value that cannot be used."""

    code = "configuration"


class ModelError(DraftlineError):
    """A model cannot be found, read, verified or run."""

    code = "model"


class ModelNotFoundError(ModelError):
    """No source holds the model that was asked for."""

    code = "model_not_found"


class ModelDamagedError(ModelError):
    """A model file is cut short or differs from its checksum."""

    code = "model_damaged"


class UnsupportedModelError(ModelError):
    """The model's family or its fill-in-the-middle format is not known."""

    code = "model_unsupported"


class StorageError(DraftlineError):
    """The disk is full, or a folder that must be written to cannot be."""

    code = "storage"


class PermissionsError(DraftlineError):
    """A folder, socket or token file belongs to somebody else, or others may use it."""

    code = "permissions"


class EngineUnavailableError(DraftlineError):
    """The engine host could not be started or does not answer."""

    code = "engine_unavailable"


class PromptTooLongError(DraftlineError):
    """The text around the cursor does not fit the model, even after trimming."""

    code = "prompt_too_long"


class DocumentRefusedError(DraftlineError):
    """A document is not sent to the engine, because engines ended on it."""

    code = "document_refused"


class ParseLimitError(DraftlineError):
    """Parsing a text took more time or memory than is allowed."""

    code = "parse_limit"


class CancelledError(DraftlineError):
    """The request was cancelled: its client closed the stream or asked for something newer."""

    code = "cancelled"


class GrammarError(DraftlineError):
    """A grammar cannot be used for a request."""

    code = "grammar"


class GrammarUnsupportedError(GrammarError):
    """A grammar package's tables have a version that is not known."""

    code = "grammar_unsupported"


class GrammarBoundError(GrammarError):
    """A text needs more stacks, or a longer lexeme, than the constraint follows."""

    code = "grammar_bound"


class PrefixTooLargeError(GrammarBoundError):
    """There is more text before the cursor than is read for one request."""

    code = "grammar_prefix_too_large"
