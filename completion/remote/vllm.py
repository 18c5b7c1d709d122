"""vLLM: its `/v1/completions` with token ids, and a proof that its tokens are ours."""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from completion.cancellation import CancelToken
from completion.decoding.decoder import RECYCLED_TOKENS
from completion.model.tokenizer import CodeTokenizer
from completion.remote.connection import Connection
from completion.remote.model_server import SAMPLE, Generated, ModelServer, Query, ServerFacts, text_of
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


class Vllm(ModelServer):
    """A vLLM server. Without `--scheduling-policy priority` it ignores priorities and does not say so.

    A salt of this process keeps the times of other users' requests from telling what is in its cached prompts.
    """

    # transformers composes characters before it splits a text; prompts are tokens, so that does not matter.
    sample = unicodedata.normalize("NFC", SAMPLE)
    text_name = "prompt"
    plain: Mapping[str, bool] = {"add_special_tokens": False}
    marked = plain

    def __init__(self, connection: Connection, tokenizer: CodeTokenizer) -> None:
        super().__init__(connection, tokenizer)
        self._own = _PLAIN | {"cache_salt": secrets.token_urlsafe(32), "stop_token_ids": sorted(tokenizer.stop_ids)}

    def facts(self, cancel: CancelToken) -> ServerFacts:
        """See `ModelServer`."""
        found = self._connection.json("/v1/models", None, cancel)
        version = self._connection.json("/version", None, cancel)
        with self._readable(f"The server at {self._connection.shown} is no vLLM: its /v1/models cannot be read."):
            model = found["data"][0]
            software, weights = f"vLLM {version['version']}", str(model.get("root", ""))
            return ServerFacts(software, str(model["id"]), int(model["max_model_len"]), weights)

    def check_tokenizer(self, special: Sequence[str], cancel: CancelToken) -> None:
        """See `ModelServer`; also check whether a completion works."""
        super().check_tokenizer(special, cancel)
        self.prepare([self._tokenizer.special[special[0]]], cancel)

    def generate(self, query: Query, cancel: CancelToken) -> Generator[Generated]:
        """See `ModelServer`."""
        body = self._own | _sampling(query.sampling) | {"prompt": list(query.prompt), "max_tokens": query.max_tokens}
        # Bytes that begin within a character have no expression: the decoder corrects a token that contradicts them.
        # Under one vLLM offers only tokens that go on with whole characters, and gives log-probabilities among those.
        if start := text_of(query.forced):
            body["structured_outputs"] = {"regex": "".join(map(_literal, start)) + r"(.|\n)*"}
        yield from self._tokens(body | {"priority": _TYPING}, cancel)

    def prepare(self, prompt: Sequence[int], cancel: CancelToken) -> None:
        """See `ModelServer`. vLLM generates at least one token."""
        for _ in self._tokens(self._own | {"prompt": list(prompt), "max_tokens": 1, "priority": _PREPARING}, cancel):
            pass

    def _tokens(self, body: dict[str, Any], cancel: CancelToken) -> Generator[Generated]:
        with closing(self._connection.events("/v1/completions", body, cancel)) as events:
            for event in events:
                with self._readable(
                    f"The reply of {self._connection.shown} lacks tokens or log-probabilities. Update vLLM."
                ):
                    choice = event["choices"][0]
                    scores = choice["logprobs"]["top_logprobs"] if choice["token_ids"] else []
                    found = [
                        self._generated(int(token), top) for token, top in zip(choice["token_ids"], scores, strict=True)
                    ]
                    is_last = choice.get("finish_reason") is not None
                yield from found
                if is_last:
                    return

    def _generated(self, token: int, top: Mapping[str, float]) -> Generated:
        """Return a token with the likeliest ones. The server's model may have more rows than the tokenizer."""
        rows = self._tokenizer.vocabulary_size
        scored = ((int(name.removeprefix(_TOKEN_ID)), float(score)) for name, score in top.items())
        known = {each: score for each, score in scored if 0 <= each < rows}
        return Generated(token, {token: known[token]} | known, None)


def _sampling(sampling: Sampling) -> dict[str, Any]:
    if sampling.temperature <= 0:
        return {"temperature": 0.0}
    drawn = {"temperature": sampling.temperature, "top_p": sampling.top_p, "min_p": sampling.min_p}
    return drawn | {"top_k": 0, "seed": sampling.seed}


def _literal(character: str) -> str:
    if character in _SIMPLE:
        return _SIMPLE[character]
    if character < " ":
        return f"\\x{ord(character):02x}"
    return f"\\{character}" if character in _OPERATORS else character
