"""Chooses the device of the backend "auto": a GPU serves if it predicts what the processor predicts, and sooner.

A GPU is tried once, in a process of its own: a driver that crashes or hangs costs only the trial. The outcome is kept
in the cache folder. It belongs to a model in its formats, a GPU, its driver, and the versions of torch and draftline.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from itertools import pairwise
from pathlib import Path

import numpy as np

from completion.errors import ModelError
from completion.model.causal_model import CausalModel, KVCache
from completion.model.gpu_memory import Gpu, GpuPlan, find_gpu
from completion.model.logits import divergence
from completion.model.store.apart import run_apart
from completion.model.store.model_store import PreparedModel
from completion.model.tokenizer import CodeTokenizer
from completion.paths import cache_dir, version, writing_to
from completion.progress import Progress
from drafting.arrays import FloatArray, IntArray
from drafting.state_files import read_state, write_state

MAX_DIVERGENCE = 0.05
"""Bound on the mean Kullback-Leibler divergence of a GPU's predictions from the processor's, in nats.

Both round the same weights: with the default model on a processor, bfloat16 differs from q4 by 0.001 and from int8 by
0.005. Another model's predictions differ by more than 1.
"""
STEPS = 10
"""Steps after each prompt of a trial."""
_PROMPT_TOKENS = 256
_LIMIT_S = 300.0
"""Time after which a trial is given up: the first start on a slow disk takes two minutes."""
_FAILURE_S = 3600.0
"""Time after which a GPU that failed is tried again: another program may have had its memory."""
_FAILURES = ("CUDA error", "Triton Error", "out of memory")
"""Words of faults that have no class of their own: of cuBLAS and Triton, and a lack of memory of a Mac's GPU."""
_ROOT = np.array([-1], dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Trial:
    """How a GPU did in comparison with the processor.

    Attributes:
        gpu: The GPU's name for users.
        seconds: Time for all prompts and steps, warm.
        cpu_seconds: The processor's time for the same.
        divergence: Mean divergence of the predictions, in nats; see `MAX_DIVERGENCE`.
        failure: Why the GPU could not compute, "" if it could.
        at: When it was tried, in seconds since 1970.
    """

    gpu: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    divergence: float = 0.0
    failure: str = ""
    at: float = 0.0

    @classmethod
    def of_failure(cls, gpu: Gpu, error: Exception) -> Trial:
        """Return the outcome of a trial that an error ended."""
        sentence = str(error).partition("\n")[0]
        return cls(gpu.name, failure=f"{type(error).__name__}, {sentence}", at=time.time())

    @property
    def refusal(self) -> str:
        """A sentence on why the processor runs the model instead; "" if the GPU runs it."""
        if self.failure:
            return f"The GPU {self.gpu} is not used: {self.failure}"
        if not self.divergence <= MAX_DIVERGENCE:  # also if it is not a number
            return f"The GPU {self.gpu} is not used: its predictions differ from the processor's."
        if self.seconds >= self.cpu_seconds:
            return (
                f"The GPU {self.gpu} is not used: the processor is {self.seconds / self.cpu_seconds:.1f} times as fast."
            )
        return ""

    @property
    def outcome(self) -> str:
        """What `draftline doctor` says of a GPU that computed; "" if it could not."""
        if not self.seconds:
            return ""
        speed = f"{self.cpu_seconds / self.seconds:.1f} times as fast as the processor"
        return f"{self.gpu}, in its trial {speed}, predictions {self.divergence:.4f} nats from the processor's"


def tried(model: PreparedModel, gpu: Gpu, plan: GpuPlan, threads: int | None, progress: Progress) -> Trial:
    """Return the outcome of a GPU's trial, from the cache or from a new trial of some seconds.

    It is compared to `threads` of the processor.
    """
    record = _record(model.digest, gpu)
    if (known := _read(record, gpu, plan)) is not None:
        return known
    progress(f"Trying the GPU {gpu.name}: once, some seconds", 0.0)
    try:
        run_apart(f"{__name__}:try_gpu", model.folder, gpu, plan, threads, record, progress=progress, limit_s=_LIMIT_S)
    except ModelError as error:
        _write(record, Trial.of_failure(gpu, error), gpu, plan)
    return _read(record, gpu, plan) or Trial(gpu.name, failure="The outcome of its trial cannot be read.")


def note_failure(digest: str, plan: GpuPlan | None, error: Exception) -> bool:
    """Return whether an error means that the GPU failed: no memory left, or a fault of its driver.

    If so, the model's next loading takes the processor, and says why. Without a plan, the model runs there already.
    """
    if plan is None or not _is_of_gpu(error):
        return False
    if (gpu := find_gpu()) is not None:
        _write(_record(digest, gpu), Trial.of_failure(gpu, error), gpu, plan)
    return True


def _is_of_gpu(error: Exception) -> bool:
    torch = sys.modules.get("torch")  # loaded if a GPU is in use
    if torch is None or not isinstance(error, RuntimeError):
        return False
    named = any(words in str(error) for words in _FAILURES)
    return named or isinstance(error, (torch.OutOfMemoryError, torch.AcceleratorError))


def failed_lately(digest: str, gpu: Gpu, plan: GpuPlan) -> str:
    """Return why a GPU is not used, if it failed within the last hour; else ""."""
    known = _read(_record(digest, gpu), gpu, plan)
    return known.refusal if known is not None and known.failure else ""


def try_gpu(folder: Path, gpu: Gpu, plan: GpuPlan, threads: int | None, record: Path, progress: Progress) -> None:
    """Run the trial in this process, and write its outcome. A GPU that fails costs no time of the processor's."""
    from completion.model.transformer import load_on_gpu, load_transformer  # noqa: PLC0415  (it imports this module)

    prompts = _prompts(folder)
    progress(f"Trying the GPU {gpu.name}: once, some seconds", 0.1)
    try:
        found, paths, seconds = _run(load_on_gpu(folder, gpu.device, plan), prompts, None)
    # The boundary to a driver: whatever it raises, the processor serves.
    except Exception as error:  # noqa: BLE001
        trial = Trial.of_failure(gpu, error)
    else:
        progress(f"Trying the GPU {gpu.name}: once, some seconds", 0.5)
        expected, _, cpu_seconds = _run(load_transformer(folder, "auto", threads), prompts, paths)
        trial = Trial(gpu.name, seconds, cpu_seconds, divergence(expected, found), at=time.time())
    _write(record, trial, gpu, plan)


def _prompts(folder: Path) -> list[IntArray]:
    """Return two pieces of real code: of this module."""
    tokens = CodeTokenizer.from_folder(folder).encode(Path(__file__).read_text(encoding="utf-8"))
    cuts = (0, _PROMPT_TOKENS, 2 * _PROMPT_TOKENS)
    return [np.array(tokens[start:end], dtype=np.int32) for start, end in pairwise(cuts)]


def _run(
    model: CausalModel, prompts: Sequence[IntArray], paths: Sequence[Sequence[int]] | None
) -> tuple[list[FloatArray], list[list[int]], float]:
    """Follow each prompt with `STEPS` tokens, of the given paths or else the most likely ones.

    The second pass is timed: in the first one libraries are loaded, and a GPU's graphs are captured.

    Returns:
        The logits after each prompt and each step, the paths, the seconds of the second pass.
    """
    caches = [model.new_cache(len(prompt) + STEPS) for prompt in prompts]
    logits: list[FloatArray] = []
    taken: list[list[int]] = []
    seconds = 0.0
    for _ in range(2):
        started = time.perf_counter()
        given = paths or taken or [()] * len(prompts)
        runs = [_follow(model, *of_prompt) for of_prompt in zip(prompts, given, caches, strict=True)]
        seconds = time.perf_counter() - started
        logits = [row for rows, _ in runs for row in rows]
        taken = [path for _, path in runs]
    return logits, taken, seconds


def _follow(
    model: CausalModel, prompt: IntArray, given: Sequence[int], cache: KVCache
) -> tuple[list[FloatArray], list[int]]:
    cache.truncate(0)
    rows = [model.prefill(prompt, np.arange(len(prompt), dtype=np.int32), cache, [len(prompt) - 1]).row(0)]
    path: list[int] = []
    for step in range(STEPS):
        path.append(given[step] if given else int(rows[-1].argmax()))
        rows.append(model.score(np.array(path[-1:], dtype=np.int32), _ROOT, cache).row(0))
        cache.commit([0])
    return rows, path


def _record(digest: str, gpu: Gpu) -> Path:
    """Return the file of a model's trial on a GPU, named after its digest: two models may have folders of one name."""
    return cache_dir() / "devices" / f"{digest[:12]}-{gpu.device}.json"


def _machine(gpu: Gpu, plan: GpuPlan) -> dict[str, object]:
    """Return what a trial's outcome depends on, besides the model."""
    try:
        torch = version_of("torch")
    except PackageNotFoundError:
        torch = ""
    return {**asdict(gpu), **asdict(plan), "torch": torch, "draftline": version()}


def _read(record: Path, gpu: Gpu, plan: GpuPlan) -> Trial | None:
    if (found := read_state(record, _decoded)) is None:
        return None
    machine, trial = found
    is_old = trial.failure and abs(time.time() - trial.at) > _FAILURE_S
    return None if is_old or machine != _machine(gpu, plan) else trial


def _decoded(data: bytes) -> tuple[dict[str, object], Trial]:
    kept = json.loads(data)
    return kept["machine"], Trial(**kept["trial"])


def _write(record: Path, trial: Trial, gpu: Gpu, plan: GpuPlan) -> None:
    with writing_to(record, "DRAFTLINE_CACHE_DIR"):
        write_state(record, json.dumps({"machine": _machine(gpu, plan), "trial": asdict(trial)}).encode())
