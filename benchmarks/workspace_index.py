"""`python -m benchmarks.workspace_index`: time to index, edit and search a workspace, and the delay of other requests.

The source is real: Python files of the packages in this environment, tokenised by the default model.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from benchmarks import workspace_scan
from completion.engine import Engine, product_settings
from completion.errors import DraftlineError
from completion.host.engine_protocol import LoadedEngine
from completion.host.job import Job, Urgency
from completion.host.metrics import HostMetrics
from completion.host.worker import EngineWorker
from completion.model.loading import load_model
from completion.model.store.model_store import prepare
from completion.model.tokenizer import CodeTokenizer
from completion.request import CompletionEvent, CompletionRequest, Mode, WorkspaceFile, WorkspaceUpdate
from drafting.arrays import IntArray
from drafting.calibration import default_calibration
from drafting.draft_budget import StepCosts
from drafting.session import Drafters
from drafting.sources.ngram_index import MAX_MATCH
from drafting.sources.prompt_lookup import continuations_scratch, rank_continuations
from drafting.sources.workspace_index import WorkspaceIndex

Documents = dict[str, IntArray]
_T = TypeVar("_T")

TARGETS = {"index_s": 30.0, "index_mb": 250.0, "latency_ratio_while_indexing": 1.2, "edit_ms": 5.0, "lookup_ms": 0.1}
LARGEST_FILE_BYTES = 200_000
"""Maximum size of an indexed file."""
REQUESTS = 7
"""Number of requests whose median latency is measured."""


def source_files(folder: Path) -> Iterator[Path]:
    """Yield Python files of ordinary size, in a stable order."""
    for path in sorted(folder.rglob("*.py")):
        if 200 < path.stat().st_size < LARGEST_FILE_BYTES:
            yield path


def read_documents(folder: Path, tokens: int, encode: Callable[[str], list[int]]) -> tuple[Documents, dict[str, str]]:
    """Return documents of a folder with `tokens` tokens in total, and their texts."""
    documents: Documents = {}
    texts: dict[str, str] = {}
    held = 0
    for path in source_files(folder):
        if held >= tokens:
            break
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        name = str(path.relative_to(folder))
        documents[name], texts[name] = np.array(encode(text)[: tokens - held], dtype=np.int32), text
        held += len(documents[name])
    return documents, texts


def milliseconds(action: Callable[[], object]) -> float:
    """Return the time of one call."""
    started = time.perf_counter()
    action()
    return 1e3 * (time.perf_counter() - started)


def time_index(documents: Documents) -> tuple[WorkspaceIndex, float]:
    """Index all documents. Return the index and the seconds that it took."""
    index = WorkspaceIndex()

    def add_all() -> None:
        for path, tokens in documents.items():
            index.update(path, tokens)

    return index, milliseconds(add_all) / 1e3


def time_edits(index: WorkspaceIndex, documents: Documents, count: int) -> list[float]:
    """Insert a token into the first third of documents, as a keystroke does. Return milliseconds."""
    rng = np.random.default_rng(1)
    times: list[float] = []
    for path in rng.choice(sorted(documents), count):
        tokens = documents[path].copy()
        if len(tokens) < 10:
            continue
        position = int(rng.integers(0, len(tokens) // 3))
        edited = np.insert(tokens, position, int(tokens[0]))
        times.append(milliseconds(lambda path=path, edited=edited: index.update(path, edited, is_open=True)))  # type: ignore[misc]
    return times


def time_lookups(index: WorkspaceIndex, documents: Documents, count: int) -> list[float]:
    """Search for the tokens at random positions of the documents. Return milliseconds."""
    rng = np.random.default_rng(2)
    scratch = continuations_scratch()
    everything = np.concatenate(list(documents.values()))
    times: list[float] = []
    for end in rng.integers(MAX_MATCH, len(everything), count):
        tail = everything[end - MAX_MATCH : end].copy()
        times.append(milliseconds(lambda tail=tail: rank_continuations(index.arrays, tail, 0, scratch)))  # type: ignore[misc]
    return times


class Typist:
    """A client of the real engine with its real queue."""

    def __init__(self, model: str, texts: Sequence[str]) -> None:
        """Start the thread of the engine. Requests complete the middle of `texts`.

        Raises:
            DraftlineError: The model cannot be loaded.
        """
        self._texts = texts
        self._documents = itertools.count()
        self._worker = EngineWorker(lambda _progress: self._load(model), HostMetrics(), queue_limit=1_000_000)
        outcomes: SimpleQueue[LoadedEngine | DraftlineError] = SimpleQueue()
        self._worker.start(lambda _sentence, _fraction: None, outcomes.put, lambda: None)
        _raise_error(outcomes.get())

    @staticmethod
    def _load(model: str) -> LoadedEngine:
        loaded = load_model(model)
        return LoadedEngine(Engine(loaded, product_settings()), loaded.name, loaded.device)

    def index(self, files: dict[str, str]) -> None:
        """Queue an update for each file, as the language server does."""
        for path, text in files.items():
            update = WorkspaceUpdate("workspace", (WorkspaceFile(path, text),))
            self._worker.submit(Job(Urgency.WORKSPACE, update, lambda _event: None))

    def median_latency_ms(self) -> float:
        """Return the median time from a request to its end, with one new document for each text."""
        return statistics.median(milliseconds(lambda text=text: self._complete(text)) for text in self._texts)  # type: ignore[misc]

    def _complete(self, text: str) -> None:
        middle = len(text) // 2
        request = CompletionRequest(
            prefix=text[:middle][-1500:],
            suffix=text[middle:][:400],
            language="python",
            document=f"document {next(self._documents)}",
            mode=Mode.BLOCK,
            max_tokens=24,
        )
        events: SimpleQueue[CompletionEvent | DraftlineError] = SimpleQueue()
        self._worker.submit(Job(Urgency.COMPLETE, request, events.put))
        while not _raise_error(events.get()).done:
            pass

    def is_busy(self) -> bool:
        """Return whether files still wait in the queue."""
        return self._worker.busy

    def stop(self) -> None:
        """End the thread of the engine."""
        self._worker.stop(60)


def _raise_error(outcome: _T | DraftlineError) -> _T:
    if isinstance(outcome, DraftlineError):
        raise outcome
    return outcome


def latency_ratio(model: str, files: dict[str, str]) -> float:
    """Return the latency of requests during indexing over that without: each may wait for the end of one file."""
    texts = sorted(files.values(), key=len, reverse=True)[10 : 10 + REQUESTS]
    if len(texts) < REQUESTS:
        raise SystemExit(f"{len(files)} files are too few. Pass a larger number with --tokens, or another --folder.")
    typist = Typist(model, texts)
    typist.median_latency_ms()  # compiles kernels
    alone = [typist.median_latency_ms()]
    typist.index(files)
    beside = typist.median_latency_ms()
    if not typist.is_busy():
        raise SystemExit(f"Indexing ended before the {REQUESTS} requests did. Pass a larger number with --tokens.")
    while typist.is_busy():
        time.sleep(0.1)
    alone.append(typist.median_latency_ms())
    typist.stop()
    return beside / statistics.mean(alone)


def main() -> None:
    """Print a table, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workspace_index", description=__doc__)
    parser.add_argument("--tokens", type=int, default=1_000_000, help="size of the workspace (default: %(default)s)")
    parser.add_argument(
        "--folder", type=Path, default=Path(sysconfig.get_paths()["purelib"]), help="folder of the source"
    )
    parser.add_argument("--model", default="default", help="model of the requests and of the tokenizer")
    parser.add_argument("--files", type=int, default=0, help="scan a repository of that many files instead")
    arguments = parser.parse_args()
    if arguments.files:
        workspace_scan.report(arguments.files)
        return
    with tempfile.TemporaryDirectory() as state:
        os.environ["DRAFTLINE_STATE_DIR"] = state  # what is learned is discarded
        report(arguments)


def report(arguments: argparse.Namespace) -> None:
    """Take every measurement and print it."""
    tokenizer = CodeTokenizer.from_folder(prepare(arguments.model).folder)
    documents, texts = read_documents(arguments.folder, arguments.tokens, lambda text: list(tokenizer.encode(text)))
    Drafters(default_calibration(), StepCosts({0: 1.0, 4: 1.0}, 4), vocabulary_size=8).warm_up()
    index, index_s = time_index(documents)
    edits, lookups = time_edits(index, documents, 400), time_lookups(index, documents, 4000)
    figures = {
        "index_s": index_s,
        "index_mb": index.size_bytes / 1e6,
        "latency_ratio_while_indexing": latency_ratio(arguments.model, texts),
        "edit_ms": float(np.percentile(edits, 95)),
        "lookup_ms": float(np.percentile(lookups, 95)),
    }
    print(f"{len(documents)} files, {sum(map(len, documents.values())):,} tokens of Python under {arguments.folder}")
    print(f"{'':32}{'measured':>10}{'target':>10}   (edits and lookups: 95th percentile)")
    for name, value in figures.items():
        print(f"{name:32}{value:10.3f}{TARGETS[name]:10.1f}")
    print(json.dumps({"benchmark": "workspace_index", "documents": len(documents), **figures}))


if __name__ == "__main__":
    main()
