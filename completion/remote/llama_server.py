"""llama.cpp's llama-server: its `/completion` with token ids, and a proof that its tokens are ours."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from pathlib import PurePosixPath
from typing import Any

from completion.cancellation import CancelToken
from completion.decoding.decoder import RECYCLED_TOKENS
from completion.remote.model_server import SAMPLE, Generated, ModelServer, Query, ServerFacts, text_of
from completion.request import Sampling

_MARKED = f"{SAMPLE} <|fim_prefix|> </s>\n   \n"
"""A text with markers, which the server can be told to take as text."""

_PLAIN = {
    "cache_prompt": True,
    "stream": True,
    "n_probs": RECYCLED_TOKENS,
    "timings_per_token": True,
    "return_progress": True,
    "sse_ping_interval": -1,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
}
"""Options of every request. A server's own defaults may penalise tokens, which breaks code."""


class LlamaServer(ModelServer):
    """A llama-server."""

    sample = _MARKED
    text_name = "content"
    plain: Mapping[str, bool] = {"add_special": False, "parse_special": False}
    marked: Mapping[str, bool] = {"add_special": False, "parse_special": True}

    def facts(self, cancel: CancelToken) -> ServerFacts:
        """See `ModelServer`."""
        props = self._connection.json("/props", None, cancel)
        with self._readable(f"The server at {self._connection.shown} is no llama-server: its /props cannot be read."):
            weights = str(props["model_path"])
            name = PurePosixPath(str(props["model_alias"] or weights).replace("\\", "/")).name
            context_tokens = int(props["default_generation_settings"]["n_ctx"])
            software = f"llama-server {props['build_info']}"
            return ServerFacts(software, name.removesuffix(".gguf"), context_tokens, weights)

    def generate(self, query: Query, cancel: CancelToken) -> Generator[Generated]:
        """See `ModelServer`."""
        body = _PLAIN | _sampling(query.sampling) | {"prompt": list(query.prompt), "n_predict": query.max_tokens}
        if start := text_of(query.forced):  # bytes that begin within a character: the decoder corrects what contradicts
            literal = "".join(f"\\U{ord(character):08X}" for character in start)
            body["grammar"] = f'root ::= "{literal}" .*'
        with closing(self._connection.events("/completion", body, cancel)) as events:
            for event in events:
                if event.get("stop"):
                    return
                if "prompt_progress" not in event:
                    yield from self._tokens(event)

    def prepare(self, prompt: Sequence[int], cancel: CancelToken) -> None:
        """See `ModelServer`."""
        body = _PLAIN | {"prompt": list(prompt), "n_predict": 0}
        with closing(self._connection.events("/completion", body, cancel)) as events:
            next((event for event in events if event.get("stop")), None)

    def _tokens(self, event: dict[str, Any]) -> Generator[Generated]:
        """Yield the tokens of an event.

        The server sends none for a token that ends within a character, and the bytes of such tokens with the next one.
        """
        with self._readable(
            f"The reply of {self._connection.shown} lacks tokens or log-probabilities. Update the llama-server."
        ):
            token = int(event["tokens"][-1])
            found = event["completion_probabilities"][-1]
            rows = self._tokenizer.vocabulary_size  # the model of the server may have more
            named = {int(one["id"]): float(one["logprob"]) for one in (found, *found["top_logprobs"])}
            scores = {token: named[token]} | {each: score for each, score in named.items() if 0 <= each < rows}
            text, cached = str(event["content"]), int(event["timings"]["cache_n"])
            is_own = text.encode() == self._tokenizer.token_bytes(token if token >= 0 else rows)
        tokens = [token] if is_own else self._tokenizer.encode(text) or [token]
        for lost in tokens[:-1]:
            yield Generated(lost, {lost: 0.0}, cached)
        yield Generated(tokens[-1], scores if tokens[-1] == token else {tokens[-1]: scores[token]}, cached)


def _sampling(sampling: Sampling) -> dict[str, Any]:
    """Return the options of drawing a token, in the order of `completion.model.sampling`."""
    if sampling.temperature <= 0:
        return {"samplers": ["top_k"], "top_k": 1, "temperature": 0.0}
    drawn = {"temperature": sampling.temperature, "top_p": sampling.top_p, "min_p": sampling.min_p}
    return drawn | {"samplers": list(drawn), "seed": sampling.seed & 0xFFFFFFFF}
