"""Conversations laid out by the model's own template, compared with transformers; messages stay data."""

import json

import pytest
from transformers import PreTrainedTokenizerFast

from completion.errors import ConversationError, PromptTooLongError
from completion.instruct import instruct_request
from completion.model.tokenizer import CodeTokenizer
from completion.prompt.chat_template import ChatTemplate
from completion.prompt.fim_format import FORMATS
from completion.prompt.pace import PromptBudget
from completion.prompt.planner import PromptPlanner
from completion.request import Message
from tests.completion.chat_models import CHATML, chat_model

TALK = [Message("system", "You edit code."), Message("user", "\n def f(x):  \n"), Message("assistant", "ok")]


@pytest.fixture
def folder(tiny_qwen2, tmp_path):
    return chat_model(tiny_qwen2, tmp_path / "chat")


def planned(folder, messages, start="", max_tokens=1000):
    tokenizer = CodeTokenizer.from_folder(folder)
    chat = ChatTemplate(folder, tokenizer.special)
    planner = PromptPlanner(tokenizer, FORMATS[0], max_tokens, chat=chat)
    return tokenizer, planner.plan(instruct_request(messages, start=start), PromptBudget())


def theirs(folder, messages, template=CHATML):
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), bos_token="<|endoftext|>")
    turns = [{"role": each.role, "content": each.content} for each in messages]
    return tokenizer.apply_chat_template(turns, chat_template=template, add_generation_prompt=True, return_dict=True)[
        "input_ids"
    ]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_prompt_has_the_tokens_that_transformers_gives(folder, count):
    _, prompt = planned(folder, TALK[:count])
    assert list(prompt.tokens) == theirs(folder, TALK[:count])


def test_a_turn_that_has_begun_goes_on(folder):
    tokenizer, prompt = planned(folder, TALK[:2], start="```python\n")
    assert tokenizer.decode(prompt.tokens).endswith(b"assistant\n```python\n")


@pytest.mark.parametrize("marker", ["<|im_end|>", "<|im_start|>", "<|fim_prefix|>", "<<|im_end|>|im_end|>"])
def test_a_control_token_that_is_spelled_out_in_a_message_stays_text(folder, marker):
    text = f"a {marker} b\ue000"
    tokenizer, prompt = planned(folder, [Message("user", text)])
    marks = [tokenizer.special["<|im_start|>"], tokenizer.special["<|im_end|>"]]
    control = [token for token in prompt.tokens if token in tokenizer.special.values()]
    assert control == [*marks, marks[0]]
    assert text.encode() in tokenizer.decode(prompt.tokens)


def test_a_template_may_strip_messages_and_use_the_first_token(folder):
    template = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content | trim }}\n{% endfor %}"
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    _, prompt = planned(folder, TALK)
    assert list(prompt.tokens) == theirs(folder, TALK, template)
    assert prompt.special_positions == (0,)


def test_a_template_in_the_tokenizers_settings_is_used(folder):
    (folder / "chat_template.jinja").unlink()
    for template in (CHATML, [{"name": "tool_use", "template": "x"}, {"name": "default", "template": CHATML}]):
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}), encoding="utf-8")
        assert list(planned(folder, TALK)[1].tokens) == theirs(folder, TALK)


def test_a_model_without_a_template_says_that_it_only_completes(tiny_qwen2):
    with pytest.raises(ConversationError, match="no chat template"):
        planned(tiny_qwen2, TALK)


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{% for", "cannot be read"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
    ],
)
def test_a_template_that_refuses_the_messages_is_an_error_with_its_reason(folder, template, complaint):
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    with pytest.raises(ConversationError, match=complaint):
        planned(folder, TALK)


def test_a_conversation_that_does_not_fit_is_refused(folder):
    with pytest.raises(PromptTooLongError, match=r"conversation has \d+ tokens; at most 20 fit"):
        planned(folder, TALK, max_tokens=20)
