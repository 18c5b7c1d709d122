"""Errors of the grammar package."""

from __future__ import annotations

from completion.errors import DraftlineError


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
