"""The interface between the engine and a kind of model server: tokens in, tokens with their log-probabilities out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from completion.cancellation import CancelToken
from completion.errors import RemoteServerError
from completion.model.tokenizer import CodeTokenizer
from completion.remote.connection import Connection
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
        forced: Bytes that the generated text must start with.
    """

    prompt: Sequence[int]
    max_tokens: int
    forced: bytes = b""
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True, slots=True)
class Generated:
    """A token that a server has generated.

    Attributes:
        log_probabilities: Log-probability of it and of the likeliest tokens at its position, before forced bytes.
        cached: Number of tokens of the prompt that the server had computed before; None if it does not tell.
    """

    token: int
    log_probabilities: dict[int, float]
    cached: int | None


def text_of(data: bytes) -> str:
    """Return bytes as a text; "" unless they are whole characters."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""


class ModelServer(ABC):
    """A kind of model server. Each method raises CancelledError at once after `cancel`, or RemoteServerError.

    Attributes:
        sample: Text by which tokenizers are compared.
        text_name: What the server calls a text.
        plain: Options of splitting a text in which markers are characters.
        marked: Options of splitting a text in which markers are tokens.
    """

    sample: str
    text_name: str
    plain: Mapping[str, bool]
    marked: Mapping[str, bool]

    def __init__(self, connection: Connection, tokenizer: CodeTokenizer) -> None:
        self._connection = connection
        self._tokenizer = tokenizer

    @abstractmethod
    def facts(self, cancel: CancelToken) -> ServerFacts:
        """Return what the server says about itself."""

    @abstractmethod
    def generate(self, query: Query, cancel: CancelToken) -> Generator[Generated]:
        """Yield tokens up to a stop token, or up to the limit. Closing the generator closes the connection."""

    @abstractmethod
    def prepare(self, prompt: Sequence[int], cancel: CancelToken) -> None:
        """Make the server compute and cache a prompt."""

    def check_tokenizer(self, special: Sequence[str], cancel: CancelToken) -> None:
        """Check that the server's model has the tokens of the tokenizer that makes the prompts.

        All tokens that are whole characters are compared, the special ones of the prompt's format, and how a text is
        split.

        Raises:
            RemoteServerError: It has others.
        """
        tokenizer, name = self._tokenizer, self.text_name
        texts = {token: text_of(tokenizer.token_bytes(token)) for token in range(tokenizer.vocabulary_size)}
        whole = [token for token, text in texts.items() if text]
        for path, body, key, expected in (
            ("/detokenize", {"tokens": whole}, name, "".join(texts.values())),
            ("/tokenize", {name: self.sample, **self.plain}, "tokens", tokenizer.encode(self.sample)),
            ("/tokenize", {name: "".join(special), **self.marked}, "tokens", [tokenizer.special[t] for t in special]),
        ):
            found = self._connection.json(path, body, cancel)
            if not isinstance(found, dict) or found.get(key) != expected:
                raise RemoteServerError(
                    f"The model at {self._connection.shown} has other tokens than the tokenizer of `model`. Set "
                    "`model` to a folder with tokenizer.json and config.json of the server's model."
                )

    @contextmanager
    def _readable(self, failure: str) -> Iterator[None]:
        """Turn what a reply lacks, or has in another form, into an error.

        Raises:
            RemoteServerError: With this sentence.
        """
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RemoteServerError(failure) from error
