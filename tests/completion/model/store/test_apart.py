"""A step in a process of its own: its progress and errors arrive here, and this process never loads torch."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from completion.errors import ModelDamagedError, ModelError
from completion.model.store.apart import run_apart
from completion.paths import module_environment

REPORTED = """
import sys
from completion.model.store.apart import run_apart
reports = []
run_apart("{module}:{function}", *{arguments!r}, progress=lambda *report: reports.append(report))
print(reports, "torch" in sys.modules)
"""


def environment():
    """Return an environment in which a process finds this module."""
    here = str(Path(__file__).parent)
    return module_environment() | {"PYTHONPATH": os.pathsep.join([here, module_environment()["PYTHONPATH"]])}


def in_fresh_process(function, *arguments):
    """Run a step of this module from a process that has not loaded torch."""
    script = REPORTED.format(module="test_apart", function=function, arguments=arguments)
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)


def step(path, progress):
    import torch

    print("a library prints", torch.__name__)
    progress("half", 0.5)
    Path(path).write_text(str(os.getppid()), encoding="utf-8")


def full_disk(progress):
    raise OSError(errno.ENOSPC, "No space left on device", "model.safetensors")


def damaged(progress):
    raise ModelDamagedError("The file is truncated.")


def killed(progress):
    os._exit(9)


def endless(progress):
    progress(str(os.getpid()), 0.0)
    threading.Event().wait()


def test_the_step_runs_in_a_child_and_reports_its_progress(tmp_path):
    done = in_fresh_process("step", str(tmp_path / "written"))
    assert done.stdout == "[('half', 0.5)] False\n", done.stderr
    assert int((tmp_path / "written").read_text()) > 0


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("full_disk", "OSError: [Errno 28] No space left on device: 'model.safetensors'"),
        ("damaged", "completion.errors.ModelDamagedError: The file is truncated."),
        ("killed", "completion.errors.ModelError: Preparing the model ended with exit status 9"),
    ],
)
def test_errors_of_the_step_are_raised_by_the_caller(function, error):
    done = in_fresh_process(function)
    assert done.returncode == 1
    assert error in done.stderr.splitlines()[-1]


def test_a_step_ends_with_the_process_that_waits_for_it():
    script = """
from completion.model.store.apart import run_apart
run_apart("test_apart:endless", progress=lambda sentence, _: print(sentence, flush=True))
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        step = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        step.wait(60)
    assert not step.is_running()


def test_a_process_that_has_torch_runs_the_step_itself(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.raises(ModelError):
        run_apart(f"{__name__}:damaged", progress=lambda *_: None)
