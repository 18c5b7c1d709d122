"""How fast a workspace is indexed, edited and searched, and what that costs a request that runs meanwhile.

The source is real: the Python files of the packages installed beside draftline, tokenised by the default model.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from completion.model.model_store import prepare
from completion.model.tokenizer import CodeTokenizer
from drafting.draft_budget import StepCosts
from drafting.learned_state import LearnedState
from drafting.ngram_index import MAX_MATCH
from drafting.prompt_lookup import continuations_scratch, rank_continuations
from drafting.session import Drafters
from drafting.workspace_index import WorkspaceIndex

IntArray = npt.NDArray[np.int32]
Documents = dict[str, IntArray]

TARGETS = {"index_s": 30.0, "index_mb": 250.0, "latency_ratio_while_indexing": 1.2, "edit_ms": 5.0, "lookup_ms": 0.1}
LARGEST_FILE_BYTES = 200_000


def source_files(folder: Path) -> Iterator[Path]:
    """Python files of ordinary size, in a stable order."""
    for path in sorted(folder.rglob("*.py")):
        if 200 < path.stat().st_size < LARGEST_FILE_BYTES:
            yield path


def read_documents(folder: Path, tokens: int, encode: Callable[[str], list[int]]) -> Documents:
    """Documents from a folder until they hold so many tokens together."""
    documents: Documents = {}
    held = 0
    for path in source_files(folder):
        if held >= tokens:
            break
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        documents[str(path.relative_to(folder))] = np.array(encode(text)[: tokens - held], dtype=np.int32)
        held += len(documents[str(path.relative_to(folder))])
    return documents


def milliseconds(action: Callable[[], object]) -> float:
    """How long a call takes."""
    started = time.perf_counter()
    action()
    return 1e3 * (time.perf_counter() - started)


def time_index(documents: Documents) -> tuple[WorkspaceIndex, float]:
    """Index everything; returns the index and seconds."""
    index = WorkspaceIndex()

    def add_all() -> None:
        for path, tokens in documents.items():
            index.update(path, tokens)

    return index, milliseconds(add_all) / 1e3


def time_edits(index: WorkspaceIndex, documents: Documents, count: int) -> list[float]:
    """Replace a token in the first third of documents of all sizes, as a keystroke does."""
    rng = np.random.default_rng(1)
    times: list[float] = []
    for path in rng.choice(sorted(documents), count):
        tokens = documents[path].copy()
        if len(tokens) < 10:
            continue
        place = int(rng.integers(0, len(tokens) // 3))
        edited = np.insert(tokens, place, int(tokens[0]))
        times.append(milliseconds(lambda path=path, edited=edited: index.update(path, edited, is_open=True)))  # type: ignore[misc]
    return times


def time_lookups(index: WorkspaceIndex, documents: Documents, count: int) -> list[float]:
    """Search for what stands at random places of the documents."""
    rng = np.random.default_rng(2)
    scratch = continuations_scratch()
    everything = np.concatenate(list(documents.values()))
    times: list[float] = []
    for end in rng.integers(MAX_MATCH, len(everything), count):
        tail = everything[end - MAX_MATCH : end].copy()
        times.append(milliseconds(lambda tail=tail: rank_continuations(index.arrays, tail, 0, scratch)))  # type: ignore[misc]
    return times


class Typist:
    """A request that decodes beside the indexing: proposals against a prompt, with a matrix product for the model."""

    def __init__(self, prompt: IntArray) -> None:
        self._drafters = Drafters(LearnedState.fresh(151_936), StepCosts({0: 25.0, 7: 41.0}, 7))
        self._prompt = prompt.tolist()
        self._weights = np.random.default_rng(0).normal(size=(1536, 1536)).astype(np.float32)
        self._rows = np.ones((8, 1536), dtype=np.float32)

    def step(self) -> None:
        """A proposal, and floating-point work of about a small model's step."""
        self._drafters.session(self._prompt).propose(self._prompt)
        for _ in range(12):
            self._rows @ self._weights

    def pace_ms(self, running: Callable[[], bool], least: int) -> float:
        """Median time of a step, while something runs and at least so often."""
        times: list[float] = []
        while running() or len(times) < least:
            times.append(milliseconds(self.step))
        return statistics.median(times)


def latency_ratio(documents: Documents) -> float:
    """How much slower a request's steps are while a workspace is indexed over and over in the background."""
    typist = Typist(next(iter(documents.values()))[:1500])
    typist.pace_ms(lambda: False, 5)
    deadline = threading.Event()
    indexing = threading.Thread(target=lambda: [time_index(documents) for _ in _until(deadline)])
    alone = [typist.pace_ms(lambda: False, 100)]
    indexing.start()
    beside = typist.pace_ms(lambda: False, 200)
    deadline.set()
    indexing.join()
    alone.append(typist.pace_ms(lambda: False, 100))
    return beside / statistics.mean(alone)


def _until(event: threading.Event) -> Iterator[int]:
    return itertools.takewhile(lambda _: not event.is_set(), itertools.count())


def main() -> None:
    """Print a table, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path(sysconfig.get_paths()["purelib"]), help="source to index")
    parser.add_argument("--model", default="default", help="whose tokenizer")
    arguments = parser.parse_args()
    tokenizer = CodeTokenizer.from_folder(prepare(arguments.model).folder)
    documents = read_documents(arguments.folder, arguments.tokens, lambda text: list(tokenizer.encode(text)))
    Drafters(LearnedState.fresh(8), StepCosts({0: 1.0, 4: 1.0}, 4)).warm_up()
    index, index_s = time_index(documents)
    edits, lookups = time_edits(index, documents, 400), time_lookups(index, documents, 4000)
    figures = {
        "index_s": index_s,
        "index_mb": index.size_bytes / 1e6,
        "latency_ratio_while_indexing": latency_ratio(documents),
        "edit_ms": float(np.percentile(edits, 95)),
        "lookup_ms": float(np.percentile(lookups, 95)),
    }
    print(f"{len(documents)} files, {sum(map(len, documents.values())):,} tokens of Python under site-packages")
    print(f"{'':32}{'measured':>10}{'target':>10}   (edits and lookups: 95th percentile)")
    for name, value in figures.items():
        print(f"{name:32}{value:10.3f}{TARGETS[name]:10.1f}")
    print(json.dumps({"benchmark": "workspace_index", "documents": len(documents), **figures}))


if __name__ == "__main__":
    main()
