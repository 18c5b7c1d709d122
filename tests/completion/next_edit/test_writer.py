"""What a model that was trained for next edits writes becomes candidates, with a real tiny model."""

import queue
from dataclasses import replace

import pytest
from safetensors.torch import load_file, save_file

from completion.cancellation import CancelToken
from completion.edits import LineEdit, NextEdit, NextEditRequest, NextEdits
from completion.engine import Engine
from completion.errors import CancelledError
from completion.host.engine_protocol import LoadedEngine
from completion.host.job import Job, Urgency
from completion.host.metrics import HostMetrics
from completion.host.worker import EngineWorker
from completion.model.loading import LoadedModel, load_model
from completion.next_edit.gate import Gate, GateWeights
from completion.next_edit.writer import MAX_ANSWER_TOKENS, WRITTEN, EditWriter, changes
from completion.request import CompletionRequest, Sampling
from tests.completion.reference import decode_plainly
from tests.tiny_models import tiny_tokenizer, write_tiny_model

UNSURE = Gate(GateWeights({}, -1.5), GateWeights({}, 2.0))  # the model judges everything, and everything is shown
REQUEST = NextEditRequest(("x = f(1)", "", "y = g(x)", "print(y)"), (LineEdit(0, ("import os",), ()),))


def writer_of(engine: Engine) -> EditWriter:
    assert engine._writer is not None
    return engine._writer


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A tiny random model that by its folder's name is one of Sweep's, and that ends most texts soon."""
    folder = write_tiny_model(tmp_path_factory.mktemp("models") / "sweep-next-edit-0.5b")
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"][tiny_tokenizer().token_to_id("<|file_sep|>")] *= 3
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return load_model(str(folder), backend="fp32")


@pytest.fixture(scope="module")
def engine(named: LoadedModel) -> Engine:
    engine = Engine(named)
    engine._gate = UNSURE
    return engine


@pytest.fixture(scope="module")
def answered(engine: Engine) -> NextEditRequest:
    """A request whose answer ends and is short enough to be judged: found among many, since the model is random."""
    for number in range(200):
        lines = (*REQUEST.lines[:3], f"y = g{number}(x)", f"print({number})")
        request = replace(REQUEST, lines=lines, document=f"document {number}")
        if any(any(edit.new) for edit in engine.next_edits(request, CancelToken()).edits):
            return request
    raise AssertionError("none of 200 answers is shown")


def test_the_draft_does_not_change_what_the_model_writes(
    engine: Engine, named: LoadedModel, answered: NextEditRequest
) -> None:
    writer = writer_of(engine)
    prompt = writer.planner.join(writer.form.pieces(answered.lines, answered.edits, answered.path)).tokens
    plain = list(
        decode_plainly(named.model, named.tokenizer, prompt, sampling=Sampling(), max_tokens=MAX_ANSWER_TOKENS)
    )
    assert plain[-1] in named.tokenizer.stop_ids
    text = writer.form.rewritten(named.tokenizer.decode(plain[:-1]).decode("utf-8", "replace"), stopped=True)
    assert text is not None
    found = writer.candidates(answered, CancelToken())
    assert found == changes(answered, writer.form.region(answered.lines, answered.edits), text)
    assert writer.sessions.open(answered.document + WRITTEN).tokens == list(prompt[:-1])


def test_candidates_come_out_of_a_worker_and_a_refused_one_does_not(
    named: LoadedModel, engine: Engine, answered: NextEditRequest
) -> None:
    done: queue.SimpleQueue[object] = queue.SimpleQueue()
    worker = EngineWorker(lambda _: LoadedEngine(engine, named.name, "cpu"), HostMetrics(), queue_limit=4)
    worker.start(lambda *_: None, lambda _: None, lambda: None)

    def edits(request: NextEditRequest) -> tuple[NextEdit, ...]:
        worker.submit(Job(Urgency.NEXT_EDIT, request, done.put))
        found = done.get(timeout=60)
        assert isinstance(found, NextEdits), found
        return found.edits

    [first, *_] = edits(answered)
    assert answered.lines[first.line : first.line + len(first.old)] == first.old
    written = writer_of(engine).candidates(answered, CancelToken())
    assert (first.line, first.old, first.new) in {(each.line, each.old, each.new) for each in written}
    assert first.fingerprint not in {
        each.fingerprint for each in edits(replace(answered, refused=(first.fingerprint,)))
    }
    worker.submit(Job(Urgency.COMPLETE, CompletionRequest("x = ", "\n", max_tokens=2), done.put))
    assert not isinstance(done.get(timeout=60), Exception)  # it goes on completing
    worker.stop(10)


def test_a_model_of_another_name_writes_nothing(tiny_model: LoadedModel, answered: NextEditRequest) -> None:
    engine = Engine(tiny_model)
    assert engine._writer is None
    engine._gate = UNSURE
    assert engine.next_edits(answered, CancelToken()).edits == ()


def test_what_is_written_for_one_user_is_drafted_for_no_other(engine: Engine, answered: NextEditRequest) -> None:
    drafters = writer_of(engine).drafters
    drafters.close_workspace("")
    before, kept = drafters.recycling("").clock.copy(), len(drafters.arrays())
    assert writer_of(engine).candidates(answered, CancelToken())
    assert drafters.recycling("").clock == before
    assert len(drafters.arrays()) == kept


@pytest.mark.parametrize(
    "request_",
    [
        replace(REQUEST, edits=()),
        replace(REQUEST, lines=()),
        replace(REQUEST, lines=("x" * 301,), edits=(LineEdit(0, ("y",), ("x",)),)),
        replace(REQUEST, lines=tuple("a b c d e f g h i j k l m n o p q r s t u v w x y z " * 4 for _ in range(9))),
        replace(REQUEST, edits=(LineEdit(0, ("  import zstandard",), ("import zstandard",)),)),
    ],
    ids=["no edits yet", "no lines", "a long line", "a large region", "only blanks changed"],
)
def test_nothing_is_written_where_it_does_not_fit(engine: Engine, request_: NextEditRequest) -> None:
    writer = writer_of(engine)
    assert writer.candidates(replace(request_, document="unfit"), CancelToken()) == []
    assert writer.sessions.open(f"unfit{WRITTEN}").tokens == []


def test_an_empty_document_and_a_large_edit_are_no_error(engine: Engine) -> None:
    emptied = replace(REQUEST, lines=("",), edits=(LineEdit(0, ("x",), ()),))
    large = tuple(f"value_{number} = {number}" for number in range(400))
    for request in (
        emptied,
        replace(REQUEST, lines=large, edits=(LineEdit(0, (), large), LineEdit(9, (), large[9:10]))),
    ):
        for found in writer_of(engine).candidates(request, CancelToken()):
            assert request.lines[found.line : found.end] == found.old


def test_a_cancelled_request_stops_writing(engine: Engine, answered: NextEditRequest) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        writer_of(engine).candidates(answered, cancel)


def changed(
    text: str, lines: tuple[str, ...] = ("a", "b", "c", "d"), language: str = ""
) -> list[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    request = NextEditRequest(lines, (LineEdit(1, ("gone",), ("b",)),), language)
    return [(each.line, each.old, each.new) for each in changes(request, range(len(lines)), text)]


def test_each_difference_is_a_candidate_of_whole_lines() -> None:
    assert changed("a\nb\nc\nd") == []
    assert changed("A\nb\nc\nD") == [(0, ("a",), ("A",)), (3, ("d",), ("D",))]
    assert changed("a\nb\nd") == [(2, ("c",), ())]
    assert changed("a\nb\nnew\nc\nd") == [(2, ("c",), ("new", "c"))]
    assert changed("a\nb\nc\nd\nnew") == [(3, ("d",), ("d", "new"))]
    assert changed("new\na\nb\nc\nd") == [(0, ("a",), ("new", "a"))]
    assert changed("new", lines=("",)) == [(0, ("",), ("new",))]


def test_an_insertion_stays_away_from_the_edited_line() -> None:
    assert changed("a\nnew\nb\nc\nd") == [(0, ("a",), ("a", "new"))]


def test_what_the_user_took_away_is_not_brought_back() -> None:
    assert changed("a\nb\n  gone\nc\nd") == []
    assert changed("a\nb\ngone\nc\nD") == [(3, ("d",), ("D",))]


def test_unsafe_code_is_no_candidate() -> None:
    lines = ("import requests", "b", "c", "d")
    assert changed("import requests\nb\nrequests.get(u, verify=False)\nd", lines=lines, language="python") == []
    assert len(changed("import requests\nb\nrequests.get(u, verify=True)\nd", lines=lines, language="python")) == 1
