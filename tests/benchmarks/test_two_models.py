"""benchmarks.two_models computes speeds from accepted drafts, and runs with two tiny models."""

import gzip
import json
import shutil
import sys

import numpy as np
import pytest

from benchmarks.drafting.records import Case
from benchmarks.quality.sets import half_of
from benchmarks.two_models import __main__ as two_models
from benchmarks.two_models.choosing import Place, choice_figures
from benchmarks.two_models.head import Head, States, frequent_tokens
from benchmarks.two_models.head_training import DEPTHS, Corpus, train
from benchmarks.two_models.layers import (
    all_but,
    cache_of,
    first_layers,
    skipped_greedily,
    with_layers,
    without_every_other,
)
from benchmarks.two_models.speed import (
    CHAIN,
    Costs,
    Drafted,
    Trees,
    accepted_share,
    best_chain,
    chains_ms,
    least_ms,
    plain_ms,
    trees_ms,
)
from benchmarks.two_models.written import Writer, read_at_once, read_from_each_token
from completion.model.int8.packed_weights import load_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.loading import load_model
from completion.request import CompletionRequest, GrammarMode, WorkspaceUpdate
from tests.tiny_models import CORPUS, LAYERS, write_tiny_model

COSTS = Costs({1: 10.0, 3: 14.0, 6: 20.0}, draft_ms=4.0)


def drafted(runs, confidence=1.0, first=0, trees=None):
    """Return a text whose chains are right as far as `runs` says."""
    agrees = np.array([[step < run for step in range(CHAIN)] for run in runs])
    nothing = Trees([0] * len(runs), [0] * len(runs), 0.0)
    return Drafted(agrees, np.full(agrees.shape, confidence, np.float32), first, trees or nothing)


def test_a_step_writes_what_is_accepted_and_one_token_of_the_model():
    text = drafted([2, 1, 0, 3, 2, 1, 0])
    assert plain_ms(text, COSTS) == 70.0
    assert chains_ms(text, COSTS, 2, 0.0) == 3 * (2 * 4.0 + 14.0)  # tokens 0 to 2, 3 to 5, 6
    assert chains_ms(text, COSTS, 1, 0.0) == 4 * (4.0 + 12.0)  # 0 and 1, 2, 3 and 4, 5 and 6
    assert accepted_share([text], 2) == pytest.approx((2 + 1 + 0 + 2 + 2 + 1 + 0) / 14)


def test_an_unsure_chain_costs_the_token_that_is_not_used():
    assert chains_ms(drafted([2, 1, 0], confidence=0.4), COSTS, 2, 0.5) == 3 * (4.0 + 10.0)


def test_what_the_user_typed_is_not_counted():
    text = drafted([0, 0, 2, 1, 0], first=2)
    assert plain_ms(text, COSTS) == 30.0
    assert chains_ms(text, COSTS, 2, 0.0) == 2 * 4.0 + 14.0


def test_chains_beside_trees_serve_only_where_there_is_no_tree():
    trees = Trees.of_steps([(2, 3), (0, 1), (0, 1)], share=0.1)
    assert (trees.nodes, trees.accepted) == ([2, 1, 0, 0, 0], [2, 1, 0, 0, 0])
    text = drafted([0, 0, 0, 1, 0], trees=trees)
    assert trees_ms(text, COSTS) == (14.0 + 1.0) + 2 * (10.0 + 1.0)
    assert chains_ms(text, COSTS, 1, 0.0, with_trees=True) == (14.0 + 1.0) + (4.0 + 12.0 + 1.0)


def test_no_rule_is_quicker_than_the_best_choice_at_each_token():
    trees = Trees.of_steps([(2, 3), (5, 1), (0, 1)], share=0.1)
    text = drafted([2, 1, 0, 1, 0], trees=trees)
    assert least_ms(text, COSTS) == (2 * 4.0 + 14.0) + (4.0 + 12.0)
    assert least_ms(text, COSTS, with_trees=True) == (14.0 + 1.0) + (4.0 + 12.0)
    assert least_ms(text, COSTS, with_chains=False, with_trees=True) == (14.0 + 1.0) + 2 * 10.0
    for way in (best_chain([text], COSTS), (5, 0.0)):
        assert chains_ms(text, COSTS, *way) >= least_ms(text, COSTS)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return [write_tiny_model(folder / name, head_dim=32, seed=seed) for seed, name in enumerate(("small", "larger"))]


def test_a_model_of_all_layers_agrees_everywhere_and_one_without_a_layer_reads_the_same_cache(folders, tmp_path):
    loaded = load_model(str(folders[0]), backend="int8", threads=1)
    weights = load_packed(folders[0], tmp_path)
    whole, part = (
        QuantizedTransformer(with_layers(weights, kept), 1)
        for kept in (first_layers(LAYERS, 1.0), first_layers(LAYERS, 0.5))
    )
    request = CompletionRequest("def f(x):\n    return x.", "\n", max_tokens=12, grammar=GrammarMode.OFF, filters=False)
    case = Case("suite", "python", request, WorkspaceUpdate(""))
    (text,) = Writer(loaded).write([case], lambda cache: cache)
    assert text.first == 1  # the dot was typed, so no drafter need guess it
    for read in (read_at_once, read_from_each_token):
        agrees, _ = read(whole, cache_of(whole, text.cache, (0, 1)), text)
        assert all(row[: len(agrees) - start].all() for start, row in enumerate(agrees) if start >= text.first)
    exits = [read(part, cache_of(part, text.cache, (0,)), text) for read in (read_at_once, read_from_each_token)]
    right = Drafted(*exits[0], 0, text.trees).runs
    assert right == Drafted(*exits[1], 0, text.trees).runs  # an exit's keys are those of the whole model
    assert min(right) == 0


def test_a_head_learns_the_states_of_a_model_and_guesses_what_it_writes(tmp_path):
    folder = write_tiny_model(tmp_path / "tied", "llama", head_dim=32)  # its output head has the rows of its embeddings
    loaded = load_model(str(folder), backend="int8", threads=1)
    states = States(load_packed(folder, tmp_path), 1)
    request = CompletionRequest("def f(x):\n    return x.", "\n", max_tokens=12, grammar=GrammarMode.OFF, filters=False)
    case = Case("suite", "python", request, WorkspaceUpdate(""))
    (text,) = Writer(loaded).write([case], lambda cache: cache_of(states.model, cache, (0, 1)))
    known = np.array([*text.prompt, *text.tokens], np.int32)
    computed = states.after(known, states.model.new_cache(len(known)))
    head = Head(states, frequent_tokens(loaded.tokenizer))
    best = (computed @ head.rows.numpy().T).argmax(axis=1)[len(text.prompt) - 1 : -1]
    assert best[text.first :].tolist() == list(text.tokens[text.first :])

    before = accepted_share([text.drafted(head.read(states, text))], 2)
    train(head, states, Corpus(computed.astype(np.float16), known, np.zeros(len(known), np.int32)), 2000.0)
    after = accepted_share([text.drafted(head.read(states, text))], 2)
    assert before < 0.2
    assert after > 0.8


def test_a_corpus_has_a_state_for_each_token_of_pieces_that_are_laid_out_as_prompts(tmp_path):
    folder = write_tiny_model(tmp_path / "tied", "llama", head_dim=32)
    tokenizer = load_model(str(folder), backend="int8", threads=1).tokenizer
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "code.py").write_text(CORPUS)
    corpus = Corpus.read(States(load_packed(folder, tmp_path), 1), tokenizer, [tmp_path / "sources"], 400)
    assert corpus.states.shape == (len(corpus.tokens), 64)
    assert len(corpus.tokens) >= 400
    first = np.flatnonzero(np.diff(corpus.pieces, prepend=-1))
    assert {tokenizer.special["<|fim_prefix|>"]} == set(corpus.tokens[first].tolist())
    assert (corpus.pieces[corpus.starts] == corpus.pieces[corpus.starts + DEPTHS]).all()


def test_layers_are_skipped_in_the_order_in_which_the_draft_stays_right():
    harm = [9, 2, 5, 1]
    assert skipped_greedily(4, lambda kept: sum(harm[layer] for layer in kept), 2) == [3, 1]
    assert all_but(4, [3, 1]) == (0, 2)
    assert without_every_other(12) == (0, 1, 2, 4, 6, 8, 10, 11)


def place(package, dataset, is_right):
    return Place(package, dataset, is_right, (100.0, 300.0), (1000.0, 2000.0))


def test_right_lines_of_both_models_are_counted_and_their_difference_has_an_interval_over_packages():
    gained, lost, same = (False, True), (True, False), (True, True)
    places = [place(f"p{number}", "one", gained) for number in range(6)]
    places += [place("q", "two", each) for each in (lost, same, same)]
    figures = choice_figures(places)
    assert figures["all"] | {"lower": 0, "upper": 0} == {
        "places": 9, "small": 3, "larger": 8, "only_small": 1, "only_larger": 6, "difference": 0.556, "lower": 0,
        "upper": 0,
    }  # fmt: skip
    assert figures["one"]["lower"] == figures["one"]["upper"] == 1.0  # every package gains, so every sample does
    assert figures["two"]["lower"] == figures["two"]["upper"] == figures["two"]["difference"] == -0.333  # one package
    assert figures["all"]["lower"] < figures["all"]["difference"] < figures["all"]["upper"] == 1.0
    assert (figures["ms_p50"], figures["prompt_ms_p50"]) == ([100, 300], [1000, 2000])


def write(folder, name, records):
    with gzip.open(folder / name, "wt", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in records)


@pytest.fixture
def data(tmp_path):
    """Return a folder of data with a place of each data set in each half."""
    names = [next(name for name in "abcdefgh" if half_of(name) == half) for half in (0, 1)]
    head = [{"language": "python", "path": "f.py", "id": f"{name}==1:f.py", "source": f"{name}==1"} for name in names]
    hole = {"prefix": "def f(value):\n    return va", "suffix": "\n", "reference": "lue.items"}
    context = {"context": [{"path": "g.py", "text": "def g():\n    return 1\n"}]}
    lines = [f"x{n} = f({n})\n" for n in range(4)]
    changed = {"before": "".join(lines), "after": "".join([*lines, "y = g()\n"])}
    for name in ("open_humaneval_infilling_even", "open_cursor_positions"):
        write(tmp_path, f"{name}.jsonl.gz", [each | hole for each in head])
    write(tmp_path, "open_repo_context.jsonl.gz", [each | hole | context for each in head])
    write(tmp_path, "open_release_replay.jsonl.gz", [each | changed for each in head])
    return tmp_path


@pytest.mark.slow
def test_each_part_prints_its_figures_and_answers_are_made_once(folders, data, monkeypatch, capsys):
    def run(parts, small):
        options = {"--parts": parts, "--model": small, "--larger": folders[1], "--data-dir": data}
        options |= {"--limit": 1, "--repeats": 1, "--threads": 1, "--out": data / "out.jsonl"}
        monkeypatch.setattr(sys, "argv", ["two_models", *(str(part) for pair in options.items() for part in pair)])
        two_models.main()
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    small = shutil.copytree(folders[0], data / "small")
    figures = run("layers,drafter,choice", small)
    assert figures["layers"]["exit after 50% of the layers"]["alone_speed"]["all"] > 0
    assert len(figures["drafter"]["small drafts"]["accepted_share"]) == CHAIN
    assert figures["choice"]["all"]["places"] == 3
    shutil.rmtree(small)  # all answers are known
    assert run("choice", small)["choice"] == figures["choice"]
