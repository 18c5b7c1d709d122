"""Loads the real engine and warms it up.

At an installation's first start this happens in a process of its own before, with requests that call every kernel: the
compiler leaves up to 250 MB in the process that ran it. That process leaves the machine code in a file.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, cast

from completion.cancellation import CancelToken
from completion.errors import ModelError
from completion.free_memory import free_bytes
from completion.host.engine_protocol import EngineLike, EngineLoader, LoadedEngine
from completion.host.process.clients import owner_of
from completion.host.server import HostSettings
from completion.memory import free_gpu_bytes, trim_gpu
from completion.model.int8.kernels.processor import processor_flags
from completion.model.store.apart import run_apart
from completion.model.transformer import has_int8_instructions
from completion.paths import cache_dir, version, writing_to
from completion.progress import FIRST_START, SLOW_S, Progress, called_after, share, silent
from completion.prompt.pace import COLD_PROMPT_S, FULL_PROMPT_S
from completion.request import WARM_UP, CompletionRequest
from drafting.compiled import use_image
from drafting.machine_code.image import UNTRIED, is_whole, note_use, write_image
from drafting.machine_code.numba_runtime import numba_version

if TYPE_CHECKING:
    from completion.engine import Engine
    from completion.model.loading import LoadedModel
    from completion.syntax.parsing.process import ParserProcess

_log = logging.getLogger(__name__)

_LONGEST_TRIAL_S = 600.0  # it takes a few seconds; a busy machine gets more
_COMPILED_SHARE = 0.95
"""Share of a first start until the engine is loaded with the image."""
_PACKAGES = ("completion", "drafting")  # those with kernels
_CALLS = "completion.host.process.kernel_calls"  # which runs in a process of its own, and loads the engine from here


def engine_loader(settings: HostSettings) -> EngineLoader:
    """Return a function that loads the real engine. It imports libraries on its thread, while the host answers."""

    def load(progress: Progress) -> LoadedEngine:
        progress("Importing the libraries.", 0.0)
        if settings.remote.url and not settings.remote.is_second:
            return load_remote_engine(settings, progress)
        trial = compile_once(settings, share(progress, 0.0, _COMPILED_SHARE))
        rest = share(progress, _COMPILED_SHARE if trial else 0.0, 1.0)
        loaded = load_engine(settings, rest, mapped=True, is_first=trial is not None)

        def settle() -> None:
            loaded.settle()
            if trial is not None:
                trial()

        settling = replace(loaded, settle=settle)
        return local_first(settings, settling) if settings.remote.is_second else settling

    return load


def compile_once(settings: HostSettings, progress: Progress, image: Path | None = None) -> Callable[[], None] | None:
    """Take the kernels' machine code from an image; at an installation's first start, a child process writes it.

    The child calls every kernel; two of its own compile most of them into numba's cache while it packs the model. Until
    the returned trial has ended, the image has another name. If the host ends before, by a fault of the code perhaps,
    the next one tries the image before it takes it. Backends that run in torch are left alone: their libraries take
    more memory than the compiler. Without an `image`, it is the one of this installation and model in the user's cache.

    Returns:
        At such a start, what tries the image, beside requests; else None.

    Raises:
        DraftlineError: The model cannot be loaded.
    """
    if settings.backend not in {"auto", "int8", "q4"} or not has_int8_instructions():
        return None
    settings = replace(settings, tcp=None)  # a certificate cannot be pickled, and the child listens on nothing
    image, trial = image or _image(settings.model), None
    untried = image.with_suffix(UNTRIED)
    if not is_whole(image):
        if is_whole(untried):
            try_apart(settings, image, progress)
        else:
            Thread(target=import_module, args=("completion.engine",)).start()  # this process only waits
            run_apart(f"{_CALLS}:call_kernels", settings, str(untried), progress=progress)
            trial = partial(try_apart, settings, image, silent)
    use_image(untried if trial else image)
    note_use(image, time.time())
    return trial


def try_apart(settings: HostSettings, image: Path, progress: Progress) -> None:
    """Complete with an untried image in a process of its own, and give it its name; an empty one if that has a fault.

    numba then loads the code of its own cache.

    Raises:
        DraftlineError: The model cannot be loaded.
    """
    untried = image.with_suffix(UNTRIED)
    with writing_to(image.parent, "DRAFTLINE_CACHE_DIR"), suppress(FileNotFoundError):  # another host has tried it
        try:
            run_apart(f"{_CALLS}:try_image", settings, str(untried), progress=progress, limit_s=_LONGEST_TRIAL_S)
        except ModelError as error:
            _log.warning("The machine code in %s is not used: %s", untried, error)
            write_image(untried, ())
        untried.replace(image)


def load_engine(
    settings: HostSettings, progress: Progress, *, mapped: bool = False, is_first: bool = False
) -> LoadedEngine:
    """Load the model and all that completes with it in this process; on the processor if a GPU fails meanwhile.

    Weights may be `mapped` until `LoadedEngine.settle` was called. At a first start the trial of an image will measure
    the costs of steps, so that a rough measure does till then.

    Raises:
        DraftlineError: The model cannot be loaded.
    """
    from completion.model.devices import note_failure  # noqa: PLC0415
    from completion.model.loading import load_model  # noqa: PLC0415
    from completion.syntax.parsing.process import ParserProcess  # noqa: PLC0415

    parsing = ParserProcess()
    load = partial(
        load_model,
        settings.model,
        backend=settings.backend,
        threads=settings.threads or None,
        gpu_memory_share=settings.gpu_memory_share,
        mapped=mapped,
        progress=progress,
    )
    warm = partial(_warm_engine, parsing=parsing, settings=settings, progress=progress, is_first=is_first)
    parsing.start()  # it gets ready while the weights are read
    Thread(target=import_module, args=("completion.engine",)).start()  # reading weights leaves the interpreter free
    with ExitStack() as on_failure:
        on_failure.callback(parsing.close)
        loaded = load()
        engine = None
        try:
            engine = warm(loaded)
        # The boundary to a GPU's driver: another program may have taken its memory since the trial.
        except Exception as error:
            if not note_failure(loaded.digest, loaded.plan, error):
                raise
        if engine is None:  # here, where the error keeps no tensors
            del loaded
            with suppress(RuntimeError):  # after some faults a driver refuses every call
                trim_gpu()
            engine = warm(load())
        on_failure.pop_all()
        return engine


def _warm_engine(
    loaded: LoadedModel, parsing: ParserProcess, settings: HostSettings, progress: Progress, *, is_first: bool
) -> LoadedEngine:
    from completion.decoding.step_costs import make_drafters  # noqa: PLC0415
    from completion.engine import Engine, product_settings  # noqa: PLC0415
    from completion.model.devices import note_failure  # noqa: PLC0415

    def rest() -> None:
        parsing.rest()
        getattr(loaded.model, "rest", lambda: None)()

    with called_after(SLOW_S, progress, FIRST_START, 0.95):
        free = free_bytes()
        for_sessions = free if loaded.plan is None else free_gpu_bytes(loaded.plan.memory_share)
        room = (int(settings.session_share * each) for each in (for_sessions, free))
        engine_settings = replace(product_settings(*room), owner_of=owner_of)
        drafters = make_drafters(loaded, engine_settings.max_nodes, briefly=is_first)
        engine = Engine(loaded, engine_settings, drafters, parsing)
        warm_up(engine, max_tokens=1)  # further tokens call nothing else
        drafters.close_workspace("")  # 1.4 MB, which only documents outside of workspaces need
    return LoadedEngine(
        engine,
        loaded.name,
        f"{loaded.device} ({loaded.outcome})" if loaded.outcome else loaded.device,
        loaded.model.shape.max_positions,
        loaded.remark,
        partial(note_failure, loaded.digest, loaded.plan),
        getattr(loaded.model, "settle", lambda: None),
        rest=rest,
        requests=engine.passes,
    )


def load_remote_engine(settings: HostSettings, progress: Progress) -> LoadedEngine:
    """Connect to the model server of the settings. The remark says where the user's text goes.

    Raises:
        DraftlineError: The settings cannot be used, or the server cannot be reached or has other tokens than the model.
    """
    from completion.remote.engine import RemoteEngine, RemoteModel  # noqa: PLC0415
    from completion.syntax.parsing.process import ParserProcess  # noqa: PLC0415

    remote, parsing = RemoteModel.connect(settings.remote, settings.model, progress, CancelToken()), ParserProcess()
    engine = RemoteEngine(remote, parsing, FULL_PROMPT_S, COLD_PROMPT_S)
    warm_up(engine)
    where = f"The text around the cursor goes to {remote.address}."

    def now() -> LoadedEngine:
        facts = engine.remote.facts
        device = f"{facts.software} at {remote.address}"
        return LoadedEngine(engine, facts.model, device, facts.context_tokens, where, rest=parsing.rest, now=now)

    return now()


def local_first(settings: HostSettings, loaded: LoadedEngine) -> LoadedEngine:
    """Return a local `Engine` with the model server of the settings beside it, which is connected in the background."""
    from completion.remote.engine import RemoteEngine, RemoteModel, read_tokenizer  # noqa: PLC0415
    from completion.remote.local_first import LocalFirst  # noqa: PLC0415
    from completion.remote.standby import Standby  # noqa: PLC0415
    from completion.syntax.parsing.process import ParserProcess  # noqa: PLC0415

    address, parsing = settings.remote, ParserProcess()
    tokenizer = cache(lambda: read_tokenizer(address.model or settings.model, silent))

    def connect(cancel: CancelToken) -> RemoteEngine:
        remote = RemoteModel.connect(address, settings.model, silent, cancel, tokenizer())
        return RemoteEngine(remote, parsing, FULL_PROMPT_S, COLD_PROMPT_S)

    def rest() -> None:
        loaded.rest()
        parsing.rest()

    standby = Standby(connect, parsing.close)
    where = f"The local model answers first; text of workspaces that you allow also goes to {address.shown()}."
    return replace(
        loaded,
        engine=LocalFirst(cast("Engine", loaded.engine), standby),
        remark=f"{loaded.remark} {where}".lstrip(),
        rest=rest,
        trouble=lambda: standby.trouble,
    )


def warm_up(engine: EngineLike, max_tokens: int = 3) -> None:
    """Complete a small text, so that no user's request waits for code that is compiled or loaded at its first use.

    With an empty numba cache this takes up to a minute.
    """
    request = CompletionRequest(
        "def add(a, b):\n    return ", language="python", document=WARM_UP, max_tokens=max_tokens
    )
    for _ in engine.complete(request, CancelToken()):
        pass


def _image(model: str) -> Path:
    """Return a path that changes when numba would compile anew: with the source, the processor, and numba itself.

    Models that are named have images of their own, because which functions run depends on what a model writes. Those in
    local folders share one.
    """
    root = Path(__file__).parents[2]
    sources = sorted(path for package in _PACKAGES for path in (root / package).rglob("*.py"))
    stamps = [(path.name, (stat := path.stat()).st_size, stat.st_mtime_ns) for path in sources]
    limits = sorted((name, value) for name, value in os.environ.items() if name.startswith("NUMBA_"))
    machine = platform.machine(), platform.node(), processor_flags(), limits
    named = "" if Path(model).exists() else model
    facts = version(), numba_version(), sys.version, machine, stamps, named
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    return cache_dir() / "kernels" / f"{digest}.image"
