"""Conversations in the engine: lossless, up to the end of a turn; edits of code."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from completion.cancellation import CancelToken
from completion.decoding.step_costs import make_drafters
from completion.decoding.stop_rules import StopRules
from completion.ending.context import cursor_context
from completion.engine import Engine
from completion.instruct import edit_request, edited_code, fence_of, instruct_request
from completion.model.loading import load_model
from completion.model.store.gguf_source import with_safetensors
from completion.request import CompletionEvent, Message, Sampling, StopReason, Suggestion
from drafting.draft_budget import StepCosts
from drafting.draft_tree import ROOT, DraftTree
from drafting.verifier import ANCHOR_ROW, AcceptedPath
from tests.completion.chat_models import chat_model

CODE = "def total(items):\n    result = 0\n    for item in items:\n        result += item.price\n    return result"
COSTS = StepCosts({0: 25.0, 16: 40.0}, 16)  # those measured on a busy machine may rule out every draft
TALK = (Message("system", "You edit code."), Message("user", f"```\n{CODE}\n```\nRename result to amount."))


@pytest.fixture(scope="module")
def loaded(tiny_qwen2, tmp_path_factory):
    return load_model(str(chat_model(tiny_qwen2, tmp_path_factory.mktemp("models") / "chat")), backend="fp32")


@pytest.fixture(scope="module")
def engine(loaded):
    drafters = make_drafters(loaded, 16)
    drafters.costs = COSTS
    return Engine(loaded, drafters=drafters)


def last(engine, request):
    *_, event = engine.complete(request, CancelToken())
    return event


class LastSession:
    """Drafters whose last session stays at hand."""

    def __init__(self, drafters):
        self._drafters = drafters

    def __getattr__(self, name):
        return getattr(self._drafters, name)

    def session(self, *arguments, **named):
        self.last = self._drafters.session(*arguments, **named)
        return self.last


def test_the_last_line_is_drafted_after_unchanged_code_although_its_tokens_differ_in_the_conversation(loaded):
    code = "def add(first, second):\n    return sum(\n        [first, second]\n"
    encode = loaded.tokenizer.encode
    assert encode(")\n\n")[0] != encode(")")[0]
    drafters = make_drafters(loaded, 16)
    drafters.costs = COSTS
    drafters = LastSession(drafters)
    talk = [Message("user", f"```\n{code})\n\nInstruction: rename it")]
    last(Engine(loaded, drafters=drafters), instruct_request(talk, start="```\n", last_line=")", max_tokens=1))
    written = AcceptedPath((ANCHOR_ROW,), tuple(encode(code)), ())
    drafters.last.observe(DraftTree.empty(), np.zeros((1, 0), dtype=np.int32), written, 25.0)
    tree = drafters.last.propose([])
    assert encode(")")[0] in tree.tokens[tree.parents == ROOT]


def test_an_event_of_a_growing_turn_has_its_text_only(engine):
    """With the probabilities of its tokens, the events of a turn of 4,000 tokens would cost more than these."""
    *growing, _ = engine.complete(instruct_request(TALK, max_tokens=40), CancelToken())
    assert len(growing) > 2
    assert all(event == CompletionEvent((Suggestion(event.suggestions[0].text),)) for event in growing)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_change_no_turn(engine, temperature):
    request = instruct_request(TALK, max_tokens=80, sampling=Sampling(temperature, seed=3))
    drafted, plain = last(engine, request), last(engine, dataclasses.replace(request, drafting=False))
    assert drafted.suggestions[0].text == plain.suggestions[0].text
    assert drafted.statistics.drafted_tokens > 0 == plain.statistics.drafted_tokens


def test_a_turn_is_the_text_that_transformers_generates(engine, loaded):
    reference = AutoModelForCausalLM.from_pretrained(with_safetensors(loaded.folder), dtype=torch.float32).eval()
    tokenizer, content = loaded.tokenizer, "def f(x):"
    marks = tokenizer.special["<|im_start|>"], tokenizer.special["<|im_end|>"]
    parts = [*tokenizer.encode(f"user\n{content}"), marks[1], *tokenizer.encode("\n")]
    prompt = [marks[0], *parts, marks[0], *tokenizer.encode("assistant\n")]
    with torch.inference_mode():
        generated = reference.generate(
            torch.tensor([prompt]), max_new_tokens=40, do_sample=False, eos_token_id=sorted(tokenizer.stop_ids)
        )[0, len(prompt) :].tolist()
    text = last(engine, instruct_request([Message("user", content)], max_tokens=40)).suggestions[0].text
    assert text == tokenizer.decode(generated).decode("utf-8", "ignore")


def test_a_turn_ends_where_the_cache_is_full_instead_of_failing(engine):
    talk = [Message("user", "x = 1\n" * 690)]
    event = last(engine, instruct_request(talk))
    assert event.stop_reason in (StopReason.MAX_TOKENS, StopReason.STOP_TOKEN)
    statistics = event.statistics
    assert statistics.prompt_tokens + statistics.generated_tokens <= 4096


@pytest.mark.parametrize(
    ("reply", "code", "complete"),
    [
        ("", "", False),
        ("a = 1", "a = 1", False),
        ("a = 1\n", "a = 1", False),
        ("a = 1\n``", "a = 1", False),
        ("a = 1\n```", "a = 1", True),
        ("a = 1\n\n```\nThis code sets a.", "a = 1\n", True),
        ("``` is in the text", "", True),
        ("a = '```'\nb", "a = '```'\nb", False),
        ("```\n", "", True),
    ],
)
def test_the_code_of_a_reply_ends_before_the_fence(reply, code, complete):
    assert edited_code(reply, "```") == (code, complete)


def test_code_of_a_growing_reply_only_grows():
    reply = "a = 1\n\n`x`\n``y\nb = 2\n```\nDone."
    codes = [edited_code(reply[:end], "```")[0] for end in range(len(reply) + 1)]
    assert all(longer.startswith(shorter) for shorter, longer in itertools.pairwise(codes))
    assert codes[-1] == "a = 1\n\n`x`\n``y\nb = 2"


@pytest.mark.parametrize(
    ("text", "end"),
    [("a = 1\n``", None), ("a = '```'\nb", None), ("a = 1\n```", 9), ("a = 1\n\n```\nDone.", 10), ("``` is", 3)],
)
def test_an_edit_ends_with_its_closing_fence(text, end):
    request = edit_request(CODE, "shorten it", "python")
    stop = StopRules(request, cursor_context(request)).text_end(text)
    assert (stop and stop.length) == end
    assert StopRules(instruct_request(TALK), cursor_context(request)).text_end(text) is None


BLOCK = "# Usage\n\n```bash\npip install x\n```"


@pytest.mark.parametrize(
    ("code", "language", "fence"),
    [
        (CODE, "python", "```"),
        (f'"""{BLOCK}"""', "python", "~~~"),
        (f"{BLOCK}\n~~~~", "python", "~~~~~"),
        ("Run it.", "markdown", "~~~"),
    ],
)
def test_the_fence_is_not_one_that_the_code_has_or_may_get(code, language, fence):
    assert fence_of(code, language) == fence
    request = edit_request(code, "shorten it", language)
    assert request.prefix == f"{fence}{language}\n"
    assert f"{fence}\n\nInstruction" in request.messages[-1].content


@pytest.mark.real_model
@pytest.mark.timeout(600)
def test_the_default_model_keeps_the_end_of_a_code_block():
    engine = Engine(load_model("default"))
    for code in (BLOCK, BLOCK.removeprefix("# Usage\n\n"), f"{BLOCK}\n\nRun it."):
        event = last(engine, edit_request(code, "Change the package name x to draftline.", "markdown"))
        expected = code.replace("install x", "install draftline")
        assert edited_code(event.suggestions[0].text, "~~~")[0] == expected


@pytest.mark.real_model
@pytest.mark.timeout(600)
def test_the_default_model_edits_a_function_and_drafts_most_of_it():
    engine = Engine(load_model("default"))
    request = edit_request(CODE, "Rename the variable result to amount.", "python")
    drafted, plain = last(engine, request), last(engine, dataclasses.replace(request, drafting=False))
    assert drafted.suggestions[0].text == plain.suggestions[0].text
    assert drafted.stop_reason is StopReason.BLOCK_END
    assert edited_code(drafted.suggestions[0].text, "```") == (CODE.replace("result", "amount"), True)
    # How much is drafted depends on what a step costs on this machine; nearly all of the text is there to be copied.
    assert drafted.statistics.steps * 3 <= plain.statistics.steps * 2
