"""Loads the real engine and warms it up."""

from __future__ import annotations

from functools import partial

from completion.cancellation import CancelToken
from completion.host.engine_protocol import EngineLike, EngineLoader, LoadedEngine
from completion.host.first_start import compile_once
from completion.host.server import HostSettings
from completion.progress import Progress, report_if_slow
from completion.request import CompletionRequest


def engine_loader(settings: HostSettings) -> EngineLoader:
    """Return a function that loads the real engine. It imports libraries on its thread, while the host answers."""

    def load(progress: Progress) -> LoadedEngine:
        progress("Importing the libraries.", 0.0)
        compile_once(settings, progress)
        return load_engine(settings, progress)

    return load


def load_engine(settings: HostSettings, progress: Progress) -> LoadedEngine:
    """Load the model and all that completes with it in this process.

    Raises:
        DraftlineError: The model cannot be loaded.
    """
    from completion.engine import Engine, product_settings  # noqa: PLC0415
    from completion.model.devices import note_failure  # noqa: PLC0415
    from completion.model.loading import FIRST_START, load_model  # noqa: PLC0415
    from completion.syntax.parser_process import ParserProcess  # noqa: PLC0415

    loaded = load_model(
        settings.model,
        backend=settings.backend,
        threads=settings.threads,
        gpu_memory_share=settings.gpu_memory_share,
        progress=progress,
    )
    with report_if_slow(progress, FIRST_START, 0.95):
        engine = Engine(loaded, product_settings(), parsing=ParserProcess())
        warm_up(engine)
    return LoadedEngine(
        engine,
        loaded.name,
        loaded.device,
        loaded.model.shape.max_positions,
        loaded.remark,
        partial(note_failure, loaded.folder, loaded.plan),
    )


def warm_up(engine: EngineLike) -> None:
    """Complete a small text, so that no user's request waits for code that is compiled or loaded at its first use.

    With an empty numba cache this takes up to a minute.
    """
    request = CompletionRequest("def add(a, b):\n    return ", language="python", max_tokens=4)
    for _ in engine.complete(request, CancelToken()):
        pass
