"""The interface between the engine and a kind of model server: tokens in, tokens with their log-probabilities out."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from completion.cancellation import CancelToken
from completion.errors import RemoteServerError
from completion.model.tokenizer import CodeTokenizer
from completion.request import Sampling

SAMPLE = (
    "def é(x1: int=42) -> str:\r\n\treturn f\"{x1:>8}\"  # naïve 北京 🙂👩‍👩‍👧 it's I'LL\n\n\n"
    "        if(a!=b&&c<=0xFF){ ++i; }\t\t \n#include <stdio.h>\nlet s='a\\n';  //---====****\n"
    "SELECT 1234567.890 FROM T_long_NameHere;\u00a0\u2028e\u0301 \u0627\u0644\u0633 \x0b\x1f"
)
"""Text with what tokenizers treat in different ways: digits, spaces, line ends, scripts, joined characters."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says about itself.

    Attributes:
        software: Name and version of the program.
        model: Name of its model.
        context_tokens: Number of positions of one request.
        weights: Path or name of the model's files there; "" if it does not tell.
    """

    software: str
    model: str
    context_tokens: int
    weights: str = ""


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
        cached: Number of tokens of the prompt that the server had computed before; None if it does not tell.
    """

    token: int
    log_probabilities: dict[int, float]
    cached: int | None


def is_text(data: bytes) -> bool:
    """Return whether bytes are whole characters, at least one."""
    try:
        return bool(data.decode())
    except UnicodeDecodeError:
        return False


def whole_tokens(tokenizer: CodeTokenizer) -> tuple[list[int], str]:
    """Return all tokens that are whole characters, and their text one after the other."""
    pieces = ((token, tokenizer.token_bytes(token)) for token in range(tokenizer.vocabulary_size))
    plain = [(token, data) for token, data in pieces if data and is_text(data)]
    return [token for token, _ in plain], b"".join(data for _, data in plain).decode()


def other_tokens(shown: str) -> RemoteServerError:
    """Return the error about a server whose model has other tokens."""
    return RemoteServerError(
        f"The model at {shown} has other tokens than the tokenizer of `model`. Set `model` to a folder with "
        "tokenizer.json and config.json of the server's model."
    )


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
