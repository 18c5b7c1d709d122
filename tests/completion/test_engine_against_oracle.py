"""The engine, with drafting, healing and KV sessions, gives the text of plain decoding with transformers."""

from __future__ import annotations

import pytest

from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.model.loading import load_model
from completion.request import CacheMode, CompletionRequest, GrammarMode, Layout, Mode, Sampling
from tests.completion.reference import decode_plainly
from tests.completion.tasks import prompt_of
from tests.tiny_models import STACK

CURSORS = range(3, len(STACK), 37)


@pytest.fixture(scope="module")
def engine(tiny_qwen2):
    return Engine(load_model(str(tiny_qwen2), backend="fp32", threads=1))


@pytest.fixture(scope="module")
def oracle(tiny_qwen2):
    """Plain decoding of a request's prompt with transformers, as bytes after the cursor."""
    loaded = load_model(str(tiny_qwen2), backend="transformers", threads=1)

    def decode(request):
        prompt = prompt_of(loaded, request)
        tokens = decode_plainly(
            loaded.model,
            loaded.tokenizer,
            prompt.tokens,
            sampling=request.sampling,
            max_tokens=request.max_tokens + len(prompt.forced),
            forced=prompt.forced,
        )
        return loaded.tokenizer.decode(tokens)[len(prompt.forced) :]

    return decode


@pytest.mark.parametrize("layout", [Layout.SUFFIX_FIRST, Layout.PREFIX_FIRST])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("drafting", [True, False])
def test_every_text_is_what_plain_decoding_gives(engine, oracle, layout, temperature, drafting):
    written = 0
    for cursor in CURSORS:
        request = CompletionRequest(
            STACK[:cursor],
            STACK[cursor:],
            "python",
            document="stack",  # one KV session for all cursors: reused tokens must not change the text
            mode=Mode.BLOCK,
            cache=CacheMode.EXACT,
            max_tokens=24,
            sampling=Sampling(temperature, seed=cursor),
            layout=layout,
            grammar=GrammarMode.OFF,
            drafting=drafting,
            filters=False,
        )
        *_, event = engine.complete(request, CancelToken())
        text = event.suggestions[0].text if event.suggestions else ""
        assert oracle(request).decode("utf-8", "ignore").startswith(text), cursor
        written += len(text)
    assert written > 5 * len(CURSORS)
