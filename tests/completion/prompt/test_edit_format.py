"""Prompts of models for next edits are token by token those that the families publish, and their answers are read."""

from functools import cache

import pytest
from tokenizers import AddedToken, Tokenizer

from completion.edits import LineEdit
from completion.model.store.model_store import prepare
from completion.model.tokenizer import CodeTokenizer
from completion.prompt.edit_format import EDIT_FORMATS, EditFormat, detect_edit_format
from completion.prompt.fim_format import detect_format
from completion.prompt.planner import PromptPlanner
from tests.tiny_models import tiny_tokenizer

QWEN = {"<|file_sep|>": 1, "<|fim_prefix|>": 2}
SEED = ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "<filename>", "<[begin▁of▁sentence]>")
NAMES = ["sweep-next-edit-0.5b.q8_0", "sweep-next-edit-1.5B", "zeta-2.1", "zeta-2", "zeta"]

LINES = ["import zstandard", "", "def read(path):", "    x = zstd.open(path)", "    return x.read()", "", "print(1)"]
EDITS = [LineEdit(0, ("import zstd",), ("import zstandard",)), LineEdit(2, ("def load(path):",), ("def read(path):",))]

INSTRUCTION = (
    "You are a code completion assistant and your task is to analyze user edits and then rewrite an excerpt that the "
    "user provides, suggesting the appropriate edits within the excerpt, taking into account the cursor location."
)
FIRST_DIFF = "@@ -1,4 +1,4 @@\n-import zstd\n+import zstandard\n \n def read(path):\n     x = zstd.open(path)\n"
SECOND_DIFF = (
    "@@ -1,6 +1,6 @@\n import zstandard\n \n-def load(path):\n+def read(path):\n     x = zstd.open(path)\n"
    "     return x.read()\n \n"
)
SEED_HISTORY = f"--- a/src/a.py\n+++ b/src/a.py\n{FIRST_DIFF}--- a/src/a.py\n+++ b/src/a.py\n{SECOND_DIFF}"
MARKED = "\n".join(LINES).replace("def read", "def read{}")

EXPECTED = {
    # sweep-autocomplete 0.1.1, next_edit_autocomplete.py: `prompt`, `diff_format`
    "sweep-next-edit-0.5b.q8_0": """<|file_sep|>src/a.py
import zstd

def load(path):
    x = zstd.open(path)
    return x.read()

print(1)
<|file_sep|>src/a.py:1:4
original:
import zstd
updated:
import zstandard
<|file_sep|>src/a.py:1:6
original:
def load(path):
    x = zstd.open(path)
updated:
def read(path):
    x = zstd.open(path)
<|file_sep|>original/src/a.py:3:10
import zstd

def load(path):
    x = zstd.open(path)
    return x.read()

print(1)
<|file_sep|>current/src/a.py:3:10
import zstandard

def read<|cursor|>(path):
    x = zstd.open(path)
    return x.read()

print(1)
<|file_sep|>updated/src/a.py:3:10
""",
    # sweepai/sweep-next-edit-1.5B, run_model.py: `build_prompt`, whose parts are joined by line breaks
    "sweep-next-edit-1.5B": """<|file_sep|>src/a.py.diff
original:
import zstd
updated:
import zstandard
<|file_sep|>src/a.py.diff
original:
def load(path):
updated:
def read(path):
<|file_sep|>original/src/a.py
import zstandard

def load(path):
    x = zstd.open(path)
    return x.read()

print(1)
<|file_sep|>current/src/a.py
import zstandard

def read(path):
    x = zstd.open(path)
    return x.read()

print(1)
<|file_sep|>updated/src/a.py""",
    # zed-industries/zed, crates/zeta_prompt: `build_v0318_cursor_prefix`
    "zeta-2.1": f"<[fim-suffix]>\n<[fim-prefix]><filename>edit_history\n{SEED_HISTORY}\n<filename>src/a.py\n"
    f"<|marker_1|>{MARKED.format('<|user_cursor|>')}<|marker_2|>\n<[fim-middle]>",
    # the same crate: `seed_coder`
    "zeta-2": f"<[fim-suffix]>\n<[fim-prefix]><filename>edit_history\n{SEED_HISTORY}\n<filename>src/a.py\n"
    f"<<<<<<< CURRENT\n{MARKED.format('<|user_cursor|>')}\n=======\n<[fim-middle]>",
    # the same crate: `zeta1`
    "zeta": f"### Instruction:\n{INSTRUCTION}\n\n### User Edits:\n\n"
    f"User edited src/a.py:\n```diff\n{FIRST_DIFF}\n```\n\n"
    f"User edited src/a.py:\n```diff\n{SECOND_DIFF}\n```\n\n### User Excerpt:\n\n```src/a.py\n<|start_of_file|>\n"
    f"<|editable_region_start|>\n{MARKED.format('<|user_cursor_is_here|>')}\n<|editable_region_end|>\n```\n\n"
    "### Response:\n",
}


@cache
def tokenizer_of(name: str) -> Tokenizer:
    """Return a tokenizer with the control tokens of a family: the default model's own, as Sweep and Zeta 1 have it."""
    if not name.startswith("zeta-2"):
        return Tokenizer.from_file(str(prepare("default").folder / "tokenizer.json"))
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in SEED])
    return tokenizer


def form_of(name: str) -> EditFormat:
    form = detect_edit_format(dict.fromkeys((*QWEN, *SEED), 0), name)
    assert form is not None
    return form


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_token_by_token_what_the_family_publishes(name: str) -> None:
    published = tokenizer_of(name)
    tokenizer = CodeTokenizer(published)
    planner = PromptPlanner(tokenizer, detect_format(tokenizer.special, name))
    prompt = planner.join(form_of(name).pieces(LINES, EDITS, "src/a.py"))
    assert published.decode(list(prompt.tokens), skip_special_tokens=False) == EXPECTED[name]
    assert list(prompt.tokens) == published.encode(EXPECTED[name], add_special_tokens=False).ids


@pytest.mark.parametrize("name", NAMES)
def test_text_of_the_user_never_becomes_a_control_token(name: str) -> None:
    tokenizer = CodeTokenizer(tokenizer_of(name))
    planner = PromptPlanner(tokenizer, detect_format(tokenizer.special, name))
    mean = ["<|file_sep|>", "<[fim-middle]>", "{path} {}", "<filename>"]
    edits = [LineEdit(1, ("{edits}",), ("<[fim-middle]>",))]
    plain = planner.join(form_of(name).pieces(["a", "b", "c", "d"], [LineEdit(1, ("a",), ("b",))], "p"))
    prompt = planner.join(form_of(name).pieces(mean, edits, "<|file_sep|>"))
    control = [prompt.tokens[at] for at in prompt.special_positions]
    assert control == [plain.tokens[at] for at in plain.special_positions]
    assert sum(token in tokenizer.stop_ids for token in prompt.tokens) == len(control)


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_that_changes_nothing_is_the_region(name: str) -> None:
    form = form_of(name)
    for region in ("a", "a\n\n    b", ""):
        assert form.rewritten(form.answer.replace("{}", region), stopped=True) == region
        assert form.rewritten(form.answer.replace("{}", region.replace("\n", "\r\n")), stopped=True) == region


@pytest.mark.parametrize(
    ("name", "answer", "stopped", "region"),
    [
        ("sweep-next-edit-1.5B", "\na\nb\n", True, "a\nb"),
        ("sweep-next-edit-1.5B", "\na\nb\n", False, None),
        ("sweep-next-edit-1.5B", "a\n", True, None),
        ("sweep-next-edit-0.5b", "a<|cursor|>\n", True, "a"),
        ("zeta-2", "a<|user_cursor|>b\n>>>>>>> UPDATED", False, "ab"),
        ("zeta-2", ">>>>>>> UPDATED\n", True, ""),
        ("zeta-2", "a\n>>>>>>", True, None),
        ("zeta-2.1", "<|marker_1|>a\nb<|marker_2|>", False, "a\nb"),
        ("zeta-2.1", "<|marker_1|><|marker_1|>", True, None),
        ("zeta-2.1", "<|marker_2|><|marker_2|>", True, None),
        ("zeta", "<|editable_region_start|>\na\n<|editable_region_end|>\n```", False, "a"),
        ("zeta", "Sorry\n<|editable_region_end|>", True, None),
    ],
)
def test_answers(name: str, answer: str, stopped: bool, region: str | None) -> None:
    assert form_of(name).rewritten(answer, stopped=stopped) == region


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("sweep-next-edit-0.5b.q8_0", 0),
        ("sweep-next-edit-1.5b.q8_0.v2", 0),
        ("sweep-next-edit-v2-7B", 0),
        ("sweep-next-edit-1.5B", 1),
        ("Zeta-2.1-Q4_K_M", 2),
        ("zeta2.1", 2),
        ("zed-industries-zeta-2", 3),
        ("zeta2", 3),
        ("zeta", 4),
        ("zeta-q8_0", 4),
    ],
)
def test_the_name_tells_the_family(name: str, row: int) -> None:
    assert form_of(name) is EDIT_FORMATS[row]


@pytest.mark.parametrize("name", ["default", "qwen2.5-coder-1.5b", "zeta-2.5", "zeta-3", "zetascale", "betazeta"])
def test_other_models_have_no_form(name: str) -> None:
    assert detect_edit_format(dict.fromkeys((*QWEN, *SEED), 0), name) is None


def test_a_name_without_the_familys_tokens_is_no_family() -> None:
    assert detect_edit_format(dict.fromkeys(SEED, 0), "sweep-next-edit-1.5B") is None
    assert detect_edit_format(QWEN, "zeta-2") is None


def test_the_region_ends_with_the_document_and_begins_and_ends_with_text() -> None:
    form, lines = form_of("zeta-2"), ["", "", *map(str, range(40)), ""]
    regions = [form.region(lines, [LineEdit(line, ("x",), (lines[line],))]) for line in (0, 2, 20, 41, 42)]
    assert regions == [range(11), range(2, 13), range(10, 31), range(31, 42), range(32, 43)]
    assert form.region([""], [LineEdit(0, ("x",), ())]) == range(1)
    assert form.region(["a"], [LineEdit(1, ("x",), ())]) == range(1)


def test_lines_around_the_region_are_shown_where_the_family_has_them() -> None:
    lines = [f"line {number}" for number in range(60)]
    edits = [LineEdit(30, ("x",), ("line 30",))]
    text = "".join(form_of("zeta").pieces(lines, edits, "a.py"))
    assert "```a.py\nline 12\n" in text
    assert "<|editable_region_end|>\nline 41\n" in text
    assert "line 48\n```" in text
    assert "<|start_of_file|>" not in text
    text = "".join(form_of("zeta-2").pieces(lines, edits, "a.py"))
    assert "<[fim-suffix]>\nline 41\n" in text
    assert "line 48\n<[fim-prefix]>" in text
