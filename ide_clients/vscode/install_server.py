"""Installs the server in a private environment of the extension: whole or not at all, and one window at a time.

It runs with a Python that has nothing installed: `install_server.py FOLDER SOURCE [REQUIREMENTS]`. SOURCE is what pip
installs. With REQUIREMENTS, exactly those packages are installed with it, each checked by its hash. What pip has
downloaded when it is interrupted stays in its cache. Standard output is the path of the Python that has the server.
"""

import hashlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

WAIT_S = 3600
"""Maximum time for another window to install, in seconds."""
POINTER = "python"
"""File in the folder that names the Python of the environment that is complete."""


def main() -> None:
    """Install, and print the path of the Python that has the server."""
    folder, source, *requirements = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Installation was cancelled"))  # ends pip, too
    # A lock of the standard library on every system, which ends with its process.
    lock = sqlite3.connect(Path(folder, "lock"), timeout=WAIT_S, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    print(installed(Path(folder), source, [Path(path) for path in requirements]))


def installed(folder: Path, source: str, requirements: list[Path]) -> Path:
    """Return the Python of the environment that has these packages. Make it if it is not complete.

    The one before stays, which other windows may run from; older ones are removed.

    Raises:
        subprocess.CalledProcessError: venv or pip failed; both say why on standard error.
    """
    wanted = "\n".join([sys.version, source, *(path.read_text(encoding="utf-8") for path in requirements)])
    environment = folder / f"environment-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pointer = folder / POINTER
    if pointer.exists() and pointer.read_text(encoding="utf-8") == str(python) and works(python):
        return python
    shutil.rmtree(environment, ignore_errors=True)
    run(sys.executable, "-m", "venv", environment)
    pip = (python, "-m", "pip", "install", "--disable-pip-version-check")
    for path in requirements:
        run(*pip, "--require-hashes", "--requirement", path)
    run(*pip, *(["--no-deps"] if requirements else []), source)
    before = Path(pointer.read_text(encoding="utf-8")).parent.parent if pointer.exists() else environment
    beside = folder / f"{POINTER}.new"
    beside.write_text(str(python), encoding="utf-8")
    beside.replace(pointer)
    for other in set(folder.glob("environment*")) - {environment, before}:
        shutil.rmtree(other, ignore_errors=True)
    return python


def works(python: Path) -> bool:
    """Return whether a Python has the server. Its own Python may have been removed from the system."""
    try:
        return subprocess.run([python, "-P", "-c", "import lsp_server.__main__"], check=False).returncode == 0
    except OSError:
        return False


def run(python: str | Path, *words: str | Path) -> None:
    """Run a module of Python; what it prints goes to standard error."""
    subprocess.run([python, "-P", *words], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
