"""The prompt's piece with the edit history: where it stands, what fits, and what is as before without it."""

from dataclasses import replace

import pytest
from tokenizers import AddedToken

from completion.model.tokenizer import CodeTokenizer
from completion.prompt.fim_format import FORMATS
from completion.prompt.pace import SHORT_BUDGET, PromptBudget
from completion.prompt.planner import PromptPlanner
from completion.request import CompletionRequest, ContextFile, Layout
from tests.tiny_models import tiny_tokenizer

HISTORY = "@@\n-old = 1\n+new = 1\n@@\n-gone\n"
REQUEST = CompletionRequest("a = ", "\nb = 2\n", "python", "src/a.py", "project", healing=False)
SNIPPET = replace(REQUEST, context=(ContextFile("b.py", "def f():"),))


def prompt_of(request, fim_format, budget=None):
    """Return the prompt's text with its special tokens."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in fim_format.required()])
    planner = PromptPlanner(CodeTokenizer(tokenizer), fim_format)
    tokens = planner.plan(request, budget or PromptBudget()).tokens
    return tokenizer.decode(list(tokens), skip_special_tokens=False)


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("fim_format", FORMATS, ids=lambda each: each.name)
def test_the_history_stands_before_the_documents_path_where_the_model_has_file_markers(fim_format, layout):
    plain = prompt_of(replace(REQUEST, layout=layout, path=""), fim_format)
    told = prompt_of(replace(REQUEST, layout=layout, history=HISTORY), fim_format)
    separator = fim_format.file_separator
    piece = f"{separator}src/a.py.diff\n{HISTORY}{separator}src/a.py\n" if separator else ""
    assert told == fim_format.begin + piece + plain.removeprefix(fim_format.begin)


def test_snippets_stand_before_the_history():
    plain = prompt_of(SNIPPET, FORMATS[0])
    assert plain == (
        "<|repo_name|>project\n<|file_sep|>b.py\ndef f():\n<|file_sep|>src/a.py\n"
        "<|fim_prefix|><|fim_suffix|>\nb = 2\n<|fim_middle|>a = "
    )
    told = prompt_of(replace(SNIPPET, history=HISTORY), FORMATS[0])
    assert told == plain.replace("<|file_sep|>src", f"<|file_sep|>src/a.py.diff\n{HISTORY}<|file_sep|>src")


@pytest.mark.parametrize("prefix", ["", "\n  \n", "import os\n\nclass "])
def test_a_new_document_is_named_because_little_else_says_what_it_is_about(prefix):
    new = replace(REQUEST, prefix=prefix, suffix="\n")
    assert prompt_of(new, FORMATS[0]) == f"<|file_sep|>src/a.py\n<|fim_prefix|><|fim_suffix|>\n<|fim_middle|>{prefix}"
    assert prompt_of(replace(new, path=""), FORMATS[0]).startswith("<|fim_prefix|>")


@pytest.mark.parametrize("side", ["prefix", "suffix"])
def test_a_longer_document_without_snippets_and_history_is_not_named(side):
    assert prompt_of(replace(REQUEST, **{side: "x = 1\n" * 400}), FORMATS[0]).startswith("<|fim_prefix|>")


def test_the_history_takes_whole_hunks_from_the_last_within_half_of_the_contexts_budget():
    hunks = [f"@@\n+{name} = {name * 40}\n" for name in "abcdef"]
    request = replace(SNIPPET, history="".join(hunks), context=SNIPPET.context * 50)
    told = prompt_of(request, FORMATS[0], PromptBudget(context_tokens=300))
    kept = told.partition(".diff\n")[2].partition("<|file_sep|>")[0]
    assert kept
    assert len(kept) < 300
    assert "".join(hunks).endswith(kept)
    assert "b.py" in told
    assert prompt_of(request, FORMATS[0], SHORT_BUDGET).count("@@") == 0


def test_a_hunk_that_spells_out_unsafe_code_is_left_out():
    told = prompt_of(replace(REQUEST, history=HISTORY + "@@\n+# begin with os.system('sh')\n"), FORMATS[0])
    assert HISTORY in told
    assert "os.system" not in told
