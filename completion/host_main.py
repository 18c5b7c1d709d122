"""`python -m completion.host_main`: the process that clients start; it serves the real engine."""

from __future__ import annotations

import os
import sys

from completion.errors import DraftlineError
from completion.host_engine import EngineLoader, LoadedEngine, warm_up
from completion.host_process import parse_settings, serve
from completion.host_server import HostSettings
from completion.progress import Progress, told_if_slow


def engine_loader(settings: HostSettings) -> EngineLoader:
    """How to make the real engine; torch is imported on the model's thread, while the host already answers."""

    def load(progress: Progress) -> LoadedEngine:
        progress("Importing the libraries.", 0.0)
        from completion.engine import Engine, EngineSettings  # noqa: PLC0415
        from completion.model.loading import FIRST_START, load_model  # noqa: PLC0415
        from completion.prompt_pace import COLD_PROMPT_S, FULL_PROMPT_S  # noqa: PLC0415

        loaded = load_model(settings.model, backend=settings.backend, threads=settings.threads, progress=progress)
        with told_if_slow(progress, FIRST_START, 0.95):
            engine = Engine(loaded, EngineSettings(full_prompt_s=FULL_PROMPT_S, cold_prompt_s=COLD_PROMPT_S))
            warm_up(engine)
        return LoadedEngine(engine, loaded.name, loaded.device, loaded.model.shape.max_positions)

    return load


def main() -> int:
    """Serve until idle; the result is the process's exit status."""
    settings = parse_settings(sys.argv[1:])
    try:
        return serve(settings, engine_loader(settings), on_listening=lambda _: None)
    except DraftlineError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the starter shows this to the user
        return 1


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # a model that is still loading on its thread cannot be waited for
