"""vLLM: its `/v1/completions` with token ids, and a proof that its tokens are ours."""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from completion.cancellation import CancelToken
from completion.decoding.decoder import RECYCLED_TOKENS
from completion.errors import RemoteServerError
from completion.model.tokenizer import CodeTokenizer
from completion.remote.connection import Connection
from completion.remote.model_server import SAMPLE, Generated, Query, ServerFacts, is_text, other_tokens, whole_tokens
from completion.request import Sampling

_PLAIN = {
    "stream": True,
    "logprobs": RECYCLED_TOKENS,
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Options of every request. A model's generation_config.json may penalise tokens, which breaks code."""
_TYPING, _PREPARING = 0, 1
"""Priorities of requests; the lowest number runs first."""
_TOKEN_ID = "token_id:"
_OPERATORS = frozenset(r"\^$.|?*+()[]{}")
_SIMPLE = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


class Vllm:
    """A vLLM server. Without `--scheduling-policy priority` it ignores priorities and does not say so.

    A salt of this process keeps the times of other users' requests from telling what is in its cached prompts.

    Args:
        connection: The way to it.
        tokenizer: Tokenizer of the prompts.
    """

    def __init__(self, connection: Connection, tokenizer: CodeTokenizer) -> None:
        self._connection = connection
        self._tokenizer = tokenizer
        self._own = _PLAIN | {"cache_salt": secrets.token_urlsafe(32), "stop_token_ids": sorted(tokenizer.stop_ids)}

    def facts(self, cancel: CancelToken) -> ServerFacts:
        """See `ModelServer`."""
        found = self._connection.json("/v1/models", None, cancel)
        version = self._connection.json("/version", None, cancel)
        try:
            model = found["data"][0]
            software, weights = f"vLLM {version['version']}", str(model.get("root", ""))
            return ServerFacts(software, str(model["id"]), int(model["max_model_len"]), weights)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RemoteServerError(
                f"The server at {self._connection.shown} is no vLLM: its /v1/models cannot be read."
            ) from error

    def check_tokenizer(self, special: Sequence[str], cancel: CancelToken) -> None:
        """See `ModelServer`. All tokens' bytes are compared, how a text is split, and whether a completion works."""
        tokenizer = self._tokenizer
        plain, text = whole_tokens(tokenizer)
        # transformers composes characters before it splits a text; prompts are tokens, so that does not matter.
        composed = unicodedata.normalize("NFC", SAMPLE)
        sample = {"prompt": composed, "add_special_tokens": False}
        marked = {"prompt": "".join(special), "add_special_tokens": False}
        for path, body, key, expected in (
            ("/detokenize", {"tokens": plain}, "prompt", text),
            ("/tokenize", sample, "tokens", tokenizer.encode(composed)),
            ("/tokenize", marked, "tokens", [tokenizer.special[name] for name in special]),
        ):
            found = self._connection.json(path, body, cancel)
            if not isinstance(found, dict) or found.get(key) != expected:
                raise other_tokens(self._connection.shown)
        self.prepare([tokenizer.special[special[0]]], cancel)

    def generate(self, query: Query, cancel: CancelToken) -> Generator[Generated]:
        """See `ModelServer`."""
        body = self._own | _sampling(query.sampling) | {"prompt": list(query.prompt), "max_tokens": query.max_tokens}
        if pattern := _starts_with(query.forced):
            body["structured_outputs"] = {"regex": pattern}
        yield from self._tokens(body | {"priority": _TYPING}, cancel)

    def prepare(self, prompt: Sequence[int], cancel: CancelToken) -> None:
        """See `ModelServer`. vLLM generates at least one token."""
        for _ in self._tokens(self._own | {"prompt": list(prompt), "max_tokens": 1, "priority": _PREPARING}, cancel):
            pass

    def _tokens(self, body: dict[str, Any], cancel: CancelToken) -> Generator[Generated]:
        with closing(self._connection.events("/v1/completions", body, cancel)) as events:
            for event in events:
                try:
                    choice = event["choices"][0]
                    scores = choice["logprobs"]["top_logprobs"] if choice["token_ids"] else []
                    found = [
                        self._generated(int(token), top) for token, top in zip(choice["token_ids"], scores, strict=True)
                    ]
                    is_last = choice.get("finish_reason") is not None
                except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
                    raise RemoteServerError(
                        f"The reply of {self._connection.shown} lacks tokens or log-probabilities. Update vLLM."
                    ) from error
                yield from found
                if is_last:
                    return

    def _generated(self, token: int, top: Mapping[str, float]) -> Generated:
        """Return a token with the likeliest ones. The server's model may have more rows than the tokenizer."""
        rows = self._tokenizer.vocabulary_size
        known = {each: float(score) for name, score in top.items() if 0 <= (each := _id(name)) < rows}
        return Generated(token, {token: known[token]} | known, None)


def _id(name: str) -> int:
    return int(name.removeprefix(_TOKEN_ID))


def _sampling(sampling: Sampling) -> dict[str, Any]:
    if sampling.temperature <= 0:
        return {"temperature": 0.0}
    drawn = {"temperature": sampling.temperature, "top_p": sampling.top_p, "min_p": sampling.min_p}
    return drawn | {"top_k": 0, "seed": sampling.seed}


def _starts_with(forced: bytes) -> str:
    """Return a regular expression of the texts that start with forced bytes; "" for none.

    Bytes that begin within a character have none: the decoder corrects a token that contradicts them. Under an
    expression vLLM offers only tokens that go on with whole characters, and gives log-probabilities among those.
    """
    if not forced or not is_text(forced):
        return ""
    return "".join(map(_literal, forced.decode())) + r"(.|\n)*"


def _literal(character: str) -> str:
    if character in _SIMPLE:
        return _SIMPLE[character]
    if character < " ":
        return f"\\x{ord(character):02x}"
    return f"\\{character}" if character in _OPERATORS else character
