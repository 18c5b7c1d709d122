"""The model's judgement of two texts after one prompt."""

from dataclasses import replace

import numpy as np
import pytest

from completion.cache.kv_session import KVSession, SessionSettings
from completion.cancellation import CancelToken
from completion.edits import LineEdit, NextEditRequest
from completion.model.loading import LoadedModel
from completion.next_edit.candidates import candidates
from completion.next_edit.judge import MAX_SCORED_TOKENS, Judge, Question
from completion.next_edit.rewrites import Candidate
from completion.prompt.fim_format import detect_format
from completion.prompt.planner import PromptPlanner

LINES = ["import zstandard", "", "x = zstd.open(1)", "y = zstd.read(x)", "print(y)"]
EDITS = [LineEdit(0, ("import zstd",), ("import zstandard",))]
ASKED = NextEditRequest(tuple(LINES), tuple(EDITS), "python", "a.py")


@pytest.fixture
def judge(tiny_model: LoadedModel) -> Judge:
    planner = PromptPlanner(tiny_model.tokenizer, detect_format(tiny_model.tokenizer.special, "tiny"))
    return Judge(tiny_model.model, tiny_model.tokenizer, planner)


def log_probability(model: LoadedModel, question: Question, text: tuple[int, ...]) -> float:
    """Return the log-probability of a text after the prompt, by one plain pass over all tokens."""
    tokens = np.array([*question.prompt.tokens, *text], dtype=np.int32)
    first, cache = len(question.prompt.tokens) - 1, model.model.new_cache(len(tokens))
    rows = range(first, len(tokens) - 1)
    logits = model.model.prefill(tokens, np.arange(len(tokens), dtype=np.int32), cache, rows)
    chances = [logits.row(index).astype(np.float64) for index in range(len(text))]
    return float(sum(row[token] - np.logaddexp.reduce(row) for row, token in zip(chances, text, strict=True)))


@pytest.mark.parametrize("candidate", candidates(LINES, EDITS), ids=lambda candidate: str(candidate.line))
def test_both_texts_get_the_log_probability_that_each_has_alone(
    judge: Judge, tiny_model: LoadedModel, candidate: Candidate
) -> None:
    session = KVSession(tiny_model.model, SessionSettings())
    question = judge.question(ASKED, candidate)
    judgement = judge.judge(question, session, CancelToken())
    assert judgement.new.sum() == pytest.approx(log_probability(tiny_model, question, question.new), abs=0.05)
    assert judgement.old.sum() == pytest.approx(log_probability(tiny_model, question, question.old), abs=0.05)
    assert session.tokens == list(question.prompt.tokens[:-1])


def test_a_deletion_at_the_end_of_the_document_is_judged(judge: Judge, tiny_model: LoadedModel) -> None:
    session = KVSession(tiny_model.model, SessionSettings())
    candidate = Candidate(4, ("print(y)",), (), frozenset({"analogy"}), 0)
    question = judge.question(ASKED, candidate)
    assert np.isfinite(judge.judge(question, session, CancelToken()).ratio)


def test_the_prompt_has_the_edit_and_not_the_line_itself(judge: Judge, tiny_model: LoadedModel) -> None:
    candidate = candidates(LINES, EDITS)[0]
    question = judge.question(ASKED, candidate)
    text = tiny_model.tokenizer.decode(question.prompt.tokens).decode()
    assert "-import zstd\n+import zstandard\n" in text
    assert "x = zstd.open(1)" not in text


def test_lines_that_both_texts_begin_or_end_with_are_part_of_the_prompt(judge: Judge, tiny_model: LoadedModel) -> None:
    old = ("x = zstd.open(1)", "y = zstd.read(x)", "print(y)")
    new = ("x = zstd.open(1)", "y = zstandard.read(x)", "print(y)")
    question = judge.question(ASKED, Candidate(2, old, new, frozenset({"analogy"}), 0))
    decode = tiny_model.tokenizer.decode
    assert decode(question.old).decode() == "y = zstd.read(x)\n"
    assert decode(question.new).decode() == "y = zstandard.read(x)\n"
    assert "x = zstd.open(1)\n" in decode(question.prompt.tokens).decode()


def test_a_long_line_is_scored_around_its_difference(judge: Judge) -> None:
    start, end = ("".join(f"{name}{number} + " for number in range(20)) for name in "ab")
    candidate = Candidate(2, (f"{start}zstd + {end}1",), (f"{start}zstandard + {end}1",), frozenset({"name"}), 0)
    asked = replace(ASKED, lines=(*LINES[:2], *candidate.old, *LINES[3:]))
    question = judge.question(asked, candidate)
    assert len(question.new) + len(question.old) > MAX_SCORED_TOKENS
    assert not question.is_too_long
    far = judge.question(asked, replace(candidate, new=(f"c{candidate.old[0]}2",)))
    assert far.is_too_long


def test_an_insertion_is_judged_with_the_line_below_it(judge: Judge, tiny_model: LoadedModel) -> None:
    candidate = Candidate(2, (LINES[2],), (LINES[2], "z = 1"), frozenset({"analogy"}), 0)
    question = judge.question(ASKED, candidate)
    texts = [tiny_model.tokenizer.decode(text).decode() for text in (question.new, question.old)]
    assert texts[1].startswith("y = ")
    assert texts[0] == "z = 1\n" + texts[1]
