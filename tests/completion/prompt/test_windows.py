"""The windows of a long document are whole lines that move in steps; of each part, the end at the cursor is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from completion.prompt.fim_format import FORMATS, detect_format
from completion.prompt.pace import PromptBudget
from completion.prompt.planner import PromptPlanner, window_end, window_start
from completion.request import CompletionRequest, ContextFile
from tests.completion.prompt.test_history import SNIPPET, prompt_of

TEXT = "".join(f"line {number}\n" for number in range(400))


@pytest.mark.parametrize("length", [100, 400])
def test_the_window_before_the_cursor_starts_with_a_line_and_moves_by_a_quarter_of_its_length(length):
    starts = set()
    for cursor in range(len(TEXT)):
        start = window_start(TEXT[:cursor], length)
        assert cursor - start <= length
        assert start == 0 or TEXT[start - 1] == "\n"
        starts.add(start)
    assert len(TEXT) // length < len(starts) <= len(TEXT) // (length // 4) + 1


@pytest.mark.parametrize("length", [100, 400])
def test_the_window_after_the_cursor_ends_with_a_line(length):
    end = window_end(TEXT, length)
    assert length - len("line 100\n") < end <= length
    assert TEXT[end - 1] == "\n"
    assert window_end(TEXT[:length], length) == length


def test_of_text_with_many_tokens_the_ones_at_the_cursor_are_kept(tiny_model):
    tokenizer, text = tiny_model.tokenizer, "".join(map(chr, range(0x4E00, 0x4F00)))
    budget = PromptBudget(prefix_tokens=20, suffix_tokens=20, context_tokens=0)
    planner = PromptPlanner(tokenizer, detect_format(tokenizer.special, "tiny"))
    prompt = planner.plan(CompletionRequest(text, text, healing=False), budget)
    assert len(prompt.before_cursor) == 2 * budget.prefix_tokens
    assert text.encode().endswith(tokenizer.decode(prompt.before_cursor))
    assert len(prompt.tokens) == 2 * budget.prefix_tokens + 2 * budget.suffix_tokens + len(prompt.special_positions)


def test_snippets_keep_their_order_and_of_a_long_path_the_end_is_shown():
    files = tuple(ContextFile(f"{name}.py", name) for name in "bca")
    told = prompt_of(replace(SNIPPET, context=files, path="folder/" * 200 + "last.py"), FORMATS[0])
    assert sorted("abc", key=lambda name: told.index(f"{name}.py\n{name}\n")) == ["b", "c", "a"]
    assert "/last.py\n<|fim_prefix|>" in told
