"""Put a real VS Code (code-server, its Node and a browser) into a private folder, for the editor tests.

`python scripts/unpack_vscode.py` prints progress and, as its last line, the paths as JSON. It needs npm; the browser is
Debian's chromium, which is installed if the script runs as root and it is missing. A second run does nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

CODE_SERVER = "4.139.1"
NODE = "24.21.0"  # the major version that this code-server wants
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / ".cache" / "vscode"
TIMEOUT_S = 600


class UnpackError(Exception):
    """The editor could not be set up; the message says why and what to do."""


def run(command: list[str | Path], *, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
    """Run a command quietly.

    Raises:
        UnpackError: The command is missing, fails, or takes longer than `TIMEOUT_S`.
    """
    words = [str(word) for word in command]
    env = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise UnpackError(f"{words[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise UnpackError(f"`{' '.join(words)}` took over {TIMEOUT_S} s; is the package registry reachable?") from error
    if done.returncode != 0:
        raise UnpackError(f"`{' '.join(words)}` failed:\n{(done.stderr or done.stdout).strip()[-1500:]}")


def node_package() -> str:
    """Return the name of the npm package that holds Node's program for this processor."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        raise UnpackError(
            f"the VS Code tests run on Linux on x86_64 or aarch64, not on {sys.platform} {platform.machine()}"
        )
    return f"node-linux-{machine}"


def install_code_server(folder: Path) -> None:
    """Install code-server with the Node it wants; no package's own scripts are run."""
    if shutil.which("npm") is None:
        raise UnpackError("npm is not installed; it comes with Node (Debian: apt-get install npm)")
    folder.mkdir(parents=True, exist_ok=True)
    packages = {"code-server": CODE_SERVER, node_package(): NODE}
    (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": packages}), encoding="utf-8")
    npm: list[str | Path] = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
    print("installing code-server …", flush=True)
    run(npm, cwd=folder)
    print("installing the editor's own packages …", flush=True)
    run([*npm, "--omit=dev"], cwd=folder / "node_modules" / "code-server" / "lib" / "vscode")


def find_or_install_browser() -> str:
    """Return the path of chromium, installing Debian's where that is possible.

    Raises:
        UnpackError: There is none, and this user cannot install it.
    """
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found:
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise UnpackError("chromium is not installed; as root: apt-get install --no-install-recommends chromium")
    print("installing chromium …", flush=True)
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "-q", "update"], environment=quiet)
    run(["apt-get", "-q", "install", "-y", "--no-install-recommends", "chromium"], environment=quiet)
    return find_or_install_browser()


def main() -> int:
    """Run the command line; the exit status is 0 if the last line printed holds the paths."""
    parser = argparse.ArgumentParser(description="Put a real VS Code into a private folder.")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where (default: %(default)s)")
    folder: Path = parser.parse_args().folder.resolve()
    whole = folder / f"complete-{CODE_SERVER}-{NODE}"  # written last
    try:
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            install_code_server(folder)
            whole.touch()
        browser = find_or_install_browser()
        node = folder / "node_modules" / node_package() / "bin" / "node"
    except UnpackError as error:
        print(f"unpack_vscode: {error}", file=sys.stderr)
        return 1
    entry = folder / "node_modules" / "code-server" / "out" / "node" / "entry.js"
    print(json.dumps({"node": str(node), "code_server": str(entry), "chromium": browser}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
