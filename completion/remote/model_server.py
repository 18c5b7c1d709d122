"""The interface between the engine and a kind of model server: tokens in, tokens with their log-probabilities out."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from completion.cancellation import CancelToken
from completion.request import Sampling


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says about itself.

    Attributes:
        software: Name and version of the program.
        model: Name of its model.
        context_tokens: Number of positions of one request.
    """

    software: str
    model: str
    context_tokens: int


@dataclass(frozen=True, slots=True)
class Query:
    """A request for tokens.

    Attributes:
        prompt: Tokens of the prompt.
        max_tokens: Maximum number of generated tokens.
        forced: Bytes that the generated text must start with.
        sampling: Parameters of drawing a token.
    """

    prompt: Sequence[int]
    max_tokens: int
    forced: bytes = b""
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True, slots=True)
class Generated:
    """A token that a server has generated.

    Attributes:
        token: The token.
        log_probabilities: Log-probability of it and of the likeliest tokens at its position, before forced bytes.
        cached: Number of tokens of the prompt that the server had computed before.
    """

    token: int
    log_probabilities: dict[int, float]
    cached: int


class ModelServer(Protocol):
    """A kind of model server. Each method raises CancelledError at once after `cancel`, or RemoteServerError."""

    def facts(self, cancel: CancelToken) -> ServerFacts:
        """Return what the server says about itself."""

    def check_tokenizer(self, special: Sequence[str], cancel: CancelToken) -> None:
        """Check that the server's model has the tokens of the tokenizer that makes the prompts.

        Args:
            special: Special tokens of the prompt's format.
            cancel: Ends the check.

        Raises:
            RemoteServerError: It has others.
        """

    def generate(self, query: Query, cancel: CancelToken) -> Generator[Generated]:
        """Yield tokens up to a stop token, or up to the limit. Closing the generator closes the connection."""

    def prepare(self, prompt: Sequence[int], cancel: CancelToken) -> None:
        """Make the server compute and cache a prompt."""
