"""Calls every kernel in a process of its own: once to compile them into an image of machine code, once to try it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread

import numpy as np

from completion.cancellation import CancelToken
from completion.edits import LineEdit, NextEditRequest
from completion.grammar.grammar import Grammars
from completion.host.engine_loader import load_engine
from completion.host.engine_protocol import EngineLike
from completion.host.server import HostSettings
from completion.model.int8.rehearsal import rehearse
from completion.model.sampling import draw
from completion.paths import writing_to
from completion.progress import FIRST_START, Progress, share, silent
from completion.request import (
    Alternatives,
    CompletionRequest,
    GrammarMode,
    Mode,
    Sampling,
    WorkspaceFile,
    WorkspaceUpdate,
)
from drafting.compiled import compile_after, note_calls, use_image, write_noted
from drafting.session import Drafters

_LONGEST_COMPILATION_S = 600.0
_NICENESS = 10  # of the trial, which a user's requests should not feel, but which must end on a busy machine
_SOURCE = "def area(width, height):\n    return width * height\n\ndef volume(width, height, depth):\n    ret"
_FIRST = CompletionRequest(
    _SOURCE, language="python", document="first", workspace="first", suggestions=3, max_tokens=16
)
_FIRST_UPDATES = (
    WorkspaceUpdate("first", (WorkspaceFile("a.py", _SOURCE), WorkspaceFile("b.py", f"{_SOURCE}urn 1\n"))),
    WorkspaceUpdate("first", (WorkspaceFile("a.py", f"import math\n{_SOURCE}"),), ("b.py",)),
)
_FIRST_REQUESTS = (
    _FIRST,
    replace(_FIRST, prefix=f"import math\n\n{_FIRST.prefix}", sampling=Sampling(temperature=0.5)),  # its tokens move
    replace(_FIRST, alternatives=Alternatives.SUPERPOSED),
    replace(_FIRST, grammar=GrammarMode.OFF, document="second", mode=Mode.LINE, suggestions=1),
)
_FIRST_EDITS = NextEditRequest(
    ("def total(first, second):", "    return first + second", "", "print(sum(1, 2))"),
    (LineEdit(0, ("def sum(first, second):",), ("def total(first, second):",)),),
    "python",
)


def _compile_rest() -> None:
    """Compile the kernels of drafters, grammar and sampling into numba's cache."""
    Drafters.warm_up()
    Grammars().load(_FIRST.language)
    draw(np.zeros(1, np.float32), Sampling(temperature=1.0), 0)


def _compile(compile_kernels: Callable[[], None]) -> None:
    """Do so in a process that ends with its parent."""
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()
    gc.disable()  # numba keeps nearly all that it makes: looking for the rest took a tenth of the time
    compile_kernels()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def call_kernels(settings: HostSettings, image: str, progress: Progress) -> None:
    """Load the engine, complete in the ways that call different kernels, and write their machine code to an image.

    Raises:
        DraftlineError: The model cannot be loaded.
        StorageError: The image cannot be written.
    """
    import_module("drafting.machine_code.compiler")  # once for this process and its copies
    if sys.platform == "linux":
        process = get_context("fork").Process
    else:
        process = get_context("spawn").Process
    compilers = [process(target=_compile, args=(each,), daemon=True) for each in (rehearse, _compile_rest)]
    for each in compilers:
        each.start()

    def wait() -> None:
        for each in compilers:
            each.join(_LONGEST_COMPILATION_S)

    note_calls()
    compile_after(wait)
    loaded = load_engine(settings, share(progress, 0.0, 0.5), mapped=True, is_first=True)
    _use_all(loaded.engine, share(progress, 0.5, 1.0))
    with writing_to(Path(image).parent, "DRAFTLINE_CACHE_DIR"):
        write_noted(Path(image))


def try_image(settings: HostSettings, image: str, progress: Progress) -> None:
    """Do the same with the machine code of an image; where others need the processors, they go first.

    Raises:
        DraftlineError: The model cannot be loaded.
    """
    if sys.platform != "win32":
        os.nice(_NICENESS)
    use_image(Path(image))
    _use_all(load_engine(settings, silent, mapped=True).engine, progress)


def _use_all(engine: EngineLike, progress: Progress) -> None:
    """Complete in the ways that call different kernels."""
    progress(FIRST_START, 0.0)
    for update in _FIRST_UPDATES:
        for _ in engine.update_workspace(update, CancelToken()):
            pass
    for index, request in enumerate(_FIRST_REQUESTS):
        for _ in engine.complete(request, CancelToken()):
            pass
        progress(FIRST_START, (index + 1) / (len(_FIRST_REQUESTS) + 1))
    engine.next_edits(_FIRST_EDITS, CancelToken())
