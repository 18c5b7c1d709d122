"""`python -m benchmarks.engine`: cost of a forward pass in draftline, transformers (bfloat16) and llama.cpp.

The implementations take turns in one run: draftline with the weights that it chooses (auto), as blocks (q4) and as
int8, llama.cpp with Q8_0 and Q4_K_M. The benchmark prints medians of a step with 1 to 32 rows on a past of 1,232 tokens
and of a prefill of 1,232 tokens. It also prints the load time and the resident memory of an engine host with a session
of 2,000 tokens. The last line is JSON. `ratio_` compares draftline with the better of llama.cpp's two, as `int8_ratio_`
does int8, and `q4_ratio_` compares blocks with int8. `--larger MODEL` measures another model the same way, under keys
that start with `larger_`. `--features avx2,fma` limits all of them to these instruction sets. With `--beside N`, other
processes compute during all steps and prefills, as a build does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np

from benchmarks.data import read_records
from benchmarks.engine.beside import others_computing
from benchmarks.engine.instruction_sets import FEATURES, check_llama, limited, run_limited
from benchmarks.engine.paths import ForwardPath, LlamaCpp, Ours, Tokens, TransformersEager
from completion.model.store.model_store import prepare
from completion.model.tokenizer import CodeTokenizer
from completion.model.transformer import Backend

PAST = 1232
"""Number of cached tokens."""
ROWS = (1, 2, 4, 8, 16, 32)
BACKENDS: tuple[Backend, ...] = ("auto", "q4", "int8")
STARTS = 5
"""Number of host starts whose median is printed."""
READ_BYTES = 1 << 31
"""Memory that is read to measure the bandwidth: more than a cache keeps, of which some servers have half a gigabyte."""
SETTLE_S = 0.3
"""Pause before each call, in seconds: threads of the last implementation spin after their work, OpenMP's for 0.2 s."""
Times = dict[str, dict[str, list[float]]]  # [path][case] → milliseconds


def real_tokens(model: str, argument: str | None, count: int) -> Tokens:
    """Return `count` tokens of real source code.

    Raises:
        SystemExit: The data has fewer.
    """
    tokenizer = CodeTokenizer.from_folder(prepare(model).folder)
    tokens: list[int] = []
    for record in read_records("open_repo_context.jsonl.gz", argument):
        tokens += tokenizer.encode(record["prefix"] + record["reference"] + record["suffix"])
        if len(tokens) >= count:
            break
    if len(tokens) < count:
        raise SystemExit(f"The data has {len(tokens)} tokens, fewer than {count}. Name another folder with --data-dir.")
    return np.array(tokens[:count], dtype=np.int32)


def milliseconds(action: Callable[[], object], *, follows: bool = False) -> float:
    """Return the time of one call, or of one that follows another at once, as the steps of a completion do."""
    time.sleep(SETTLE_S)
    if follows:
        action()
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start)


class Memory:
    """Memory that no cache holds, and threads that read it."""

    def __init__(self, threads: int) -> None:
        # Zeros would all be in one page until they are written.
        self._words = np.ones((threads, READ_BYTES // 8 // threads), np.uint64)
        self._pool = ThreadPoolExecutor(threads)
        self._ms: list[float] = []

    def read(self) -> None:
        """Read all of it, each thread its part, and note the time."""
        self._ms.append(milliseconds(lambda: list(self._pool.map(np.bitwise_or.reduce, self._words)), follows=True))

    @property
    def bytes_per_s(self) -> float:
        """The median speed of the reads."""
        return 1000 * self._words.nbytes / statistics.median(self._ms)


def measure(paths: list[ForwardPath], tokens: Tokens, repeats: int, memory: Memory) -> Times:
    """Time each case on each path and a read of the memory in turn, so that all have the same noise of the machine.

    Every turn starts with the next path: what follows 32 rows of another one is slower (1 row by 5 ms on one machine).
    The first turn is not counted, because a first call allocates.
    """
    times: Times = {path.name: {} for path in paths}

    def take(turn: int, case: str, action: Callable[[ForwardPath], None]) -> None:
        first = turn % len(paths)
        for path in paths[first:] + paths[:first]:
            found = milliseconds(lambda path=path: action(path), follows=case != "prefill")  # type: ignore[misc]
            if turn:
                times[path.name].setdefault(case, []).append(found)

    for turn in range(max(2, repeats // 4) + 1):
        take(turn, "prefill", lambda path: path.prefill(tokens[:PAST]))
    for turn in range(repeats + 1):
        memory.read()
        for rows in ROWS:
            step = tokens[PAST : PAST + rows]
            take(turn, f"rows_{rows}", lambda path, step=step: path.score(step))  # type: ignore[misc]
    return times


def summary(times: Times) -> dict[str, float]:
    """Return the figures by name. Rows' ratios below 1, prefill's and speed-ups above 1 favour draftline, or q4."""
    median = {path: {case: statistics.median(ms) for case, ms in cases.items()} for path, cases in times.items()}
    ours, eager = median["draftline auto"], median.get(TransformersEager.name)
    q4, int8 = median["draftline q4"], median["draftline int8"]
    found = {f"ms_rows_{rows}": ours[f"rows_{rows}"] for rows in ROWS}
    found["prefill_tokens_per_s"] = 1000 * PAST / ours["prefill"]
    if eager is not None:
        for rows in (1, 8):
            found[f"speedup_transformers_rows_{rows}"] = eager[f"rows_{rows}"] / ours[f"rows_{rows}"]
    found |= {f"q4_ratio_rows_{rows}": q4[f"rows_{rows}"] / int8[f"rows_{rows}"] for rows in ROWS}
    found["q4_ratio_prefill"] = int8["prefill"] / q4["prefill"]
    others = [cases for path, cases in median.items() if path.startswith("llama.cpp")]
    if others:
        llama = {case: min(cases[case] for cases in others) for case in others[0]}
        for prefix, own in (("", ours), ("int8_", int8)):
            found |= {f"{prefix}ratio_rows_{rows}": own[f"rows_{rows}"] / llama[f"rows_{rows}"] for rows in ROWS}
            found[f"{prefix}ratio_prefill"] = llama["prefill"] / own["prefill"]
    return found


def print_table(times: Times) -> None:
    """Print the medians, with the fastest time in brackets."""
    cases = [f"rows_{rows}" for rows in ROWS]
    print(f"{'':>18}" + "".join(f"{case:>16}" for case in cases) + f"{'prefill tok/s':>16}")
    for path, found in times.items():
        cells = [f"{statistics.median(found[case]):.1f} ({min(found[case]):.1f})" for case in cases]
        speed = 1000 * PAST / statistics.median(found["prefill"])
        print(f"{path:>18}" + "".join(f"{cell:>16}" for cell in cells) + f"{speed:>16.0f}")
    print("steps in ms: median (fastest)")


def host_cost(threads: int) -> dict[str, float]:
    """Return the load time and resident memory as medians over several processes.

    The first start of a new installation fills the caches of all later starts: compiled kernels, packed weights, and
    bytecode. Its load time is `first_load_s`.
    """
    command = [sys.executable, "-m", "benchmarks.engine.host", "--threads", str(threads)]
    starts: list[dict[str, float]] = []
    for _ in range(1 + STARTS):
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        starts.append(json.loads(printed.splitlines()[-1]))
    first, *later = starts
    medians = {key: statistics.median(start[key] for start in later) for key in first}
    return {"first_load_s": first["load_s"], **medians}


def forward_figures(model: str, options: argparse.Namespace) -> dict[str, float]:
    """Time the forward passes of a model, print a table, and return the figures by name."""
    tokens = real_tokens(model, options.data_dir, PAST + max(ROWS))
    own = [Ours(model, options.threads, backend) for backend in BACKENDS]
    paths: list[ForwardPath] = [*own]
    if not options.without_transformers:
        paths.append(TransformersEager(model, options.threads))
    if not options.without_llama:
        paths += [LlamaCpp(model, options.threads, "Q8_0"), LlamaCpp(model, options.threads, "Q4_K_M")]
    memory = Memory(options.threads)
    with others_computing(options.beside):
        times = measure(paths, tokens, options.repeats, memory)
    print(model)
    print_table(times)
    figures = summary(times)
    step_bytes_per_s = 1000 * own[0].step_bytes / figures["ms_rows_1"]
    figures["memory_gb_per_s"] = memory.bytes_per_s / 1e9
    return figures | {"share_of_bandwidth_rows_1": step_bytes_per_s / memory.bytes_per_s}


def main() -> None:
    """Print a table, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=12, help="number of timings (default: %(default)s)")
    parser.add_argument(
        "--without-llama",
        action="store_true",
        help="skip llama.cpp, for example because llama-cpp-python is not installed",
    )
    parser.add_argument(
        "--without-transformers",
        action="store_true",
        help="skip transformers, which takes minutes on a processor without bfloat16 instructions",
    )
    parser.add_argument("--larger", metavar="MODEL", help="measure this model, too, for example qwen2.5-coder-1.5b")
    parser.add_argument("--features", choices=FEATURES, help="the instruction sets that all engines may use")
    parser.add_argument(
        "--beside", type=int, default=0, metavar="N", help="number of other processes that compute meanwhile"
    )
    arguments = parser.parse_args()
    if not arguments.without_llama and find_spec("llama_cpp") is None:
        raise SystemExit("llama-cpp-python is not installed. Run: pip install '.[bench]', or pass --without-llama")
    if arguments.features and not limited(arguments.features):
        raise SystemExit(run_limited(arguments.features))
    if arguments.features and not arguments.without_llama:
        check_llama(arguments.features)
    cost = host_cost(arguments.threads)  # before the other models, whose memory would slow the loading
    figures = forward_figures("default", arguments) | cost
    if arguments.larger:
        larger = forward_figures(arguments.larger, arguments)
        figures |= {f"larger_{key}": value for key, value in larger.items()}
    print(
        f"host: load {cost['load_s']:.2f} s (first start {cost['first_load_s']:.2f} s),"
        f" resident {cost['resident_mb']:.0f} MB"
    )
    print(json.dumps({key: round(value, 3) for key, value in figures.items()}))


if __name__ == "__main__":
    main()
