"""Unpack a recent Neovim from newer Debian packages into a private folder; nothing on the machine is changed.

`python scripts/unpack_neovim.py` prints progress and, as its last line, the path of the program. It needs apt and
dpkg, no root, and the mirror that the machine's own apt already uses. The C library comes along, so the release of
Debian that runs the script does not matter. A second run finds the program and does nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NEEDED_VERSION = (0, 12)
PACKAGES = ("neovim", "patchelf")  # patchelf points the program at the libraries that are unpacked beside it
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / ".cache" / "neovim"
TIMEOUT_S = 300


class UnpackError(Exception):
    """Neovim could not be unpacked; the message says why and what to do."""


def run(command: list[str | Path], *, cwd: Path | None = None) -> str:
    """Run a command and return its standard output.

    Raises:
        UnpackError: The command is missing, fails, or takes longer than `TIMEOUT_S`.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise UnpackError(f"{words[0]} is not installed; this script needs Debian's apt and dpkg") from error
    except subprocess.TimeoutExpired as error:
        raise UnpackError(
            f"{words[0]} did not finish within {TIMEOUT_S} s; is the package mirror reachable?"
        ) from error
    if done.returncode != 0:
        raise UnpackError(f"`{' '.join(words)}` failed:\n{(done.stderr or done.stdout).strip()[-1500:]}")
    return done.stdout


def installed_version(program: Path) -> tuple[int, ...] | None:
    """Return the version of a working Neovim, None if there is none at that path."""
    if not program.exists():
        return None
    try:
        first_line = run([program, "--version"]).splitlines()[0]
    except (UnpackError, OSError, IndexError):
        return None
    return tuple(int(part) for part in first_line.removeprefix("NVIM v").split("-")[0].split(".")[:2])


def debian_mirrors() -> list[str]:
    """Return the base addresses of Debian's main archive that this machine's apt is set up with.

    Raises:
        UnpackError: apt knows no Debian archive.
    """
    lines = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)"]).splitlines()
    found: list[str] = []
    for line in lines:
        address, codename, component, origin = [*line.split(), "", "", "", ""][:4]
        of_debian = origin == "Debian" or "debian" in address  # apt knows the origin only after its first update
        if component == "main" and of_debian and "security" not in address + codename and address not in found:
            found.append(address)
    if not found:
        raise UnpackError("apt has no Debian archive in its sources (`apt-get indextargets` names none)")
    return found


def private_apt(folder: Path, mirror: str, suite: str) -> list[str]:
    """Lay out an apt of our own under `folder` and return the options that make apt-get use it."""
    for name in ("state/lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()  # empty: every dependency is resolved from the newer suite, the C library included
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    signed_by = f"[signed-by={keyring}] " if keyring.exists() else ""
    (folder / "sources.list").write_text(f"deb {signed_by}{mirror} {suite} main\n", encoding="utf-8")
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": folder / "parts",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        "APT::Install-Recommends": "false",
        "APT::Update::Post-Invoke-Success::": "true",
    }
    if os.geteuid() == 0:
        settings["APT::Sandbox::User"] = "root"  # apt's own user may not be able to reach a private folder
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def package_names(options: list[str]) -> list[str]:
    """Return `name=version` of Neovim and of everything it needs in the newer suite."""
    plan = run(["apt-get", *options, "install", "--simulate", *PACKAGES])
    chosen = [line.split() for line in plan.splitlines() if line.startswith("Inst ")]
    names = [f"{words[1]}={words[2].lstrip('(')}" for words in chosen]
    versions = [name.partition("=")[2] for name in names if name.startswith("neovim=")]
    if not versions or tuple(int(part) for part in versions[0].split(".")[:2]) < NEEDED_VERSION:
        wanted = ".".join(map(str, NEEDED_VERSION))
        raise UnpackError(f"the suite offers Neovim {versions or 'not at all'}, {wanted} or newer is needed")
    return names


def unpack(mirror: str, suite: str, work: Path, root: Path) -> None:
    """Download Neovim with all it needs from `suite` and unpack it below `root`."""
    options = private_apt(work, mirror, suite)
    print(f"reading the package list of Debian {suite} …", flush=True)
    run(["apt-get", *options, "-q", "update"])
    names = package_names(options)
    print(f"downloading {len(names)} packages …", flush=True)
    archives = work / "archives"
    archives.mkdir()
    run(["apt-get", *options, "-q", "download", *names], cwd=archives)
    print("unpacking …", flush=True)
    for archive in sorted(archives.glob("*.deb")):
        run(["dpkg", "-x", archive, root])


def one_of(root: Path, pattern: str) -> Path:
    """Return the first file below `root` that matches `pattern`.

    Raises:
        UnpackError: No file matches.
    """
    for path in sorted(root.glob(pattern)):
        return path
    raise UnpackError(f"the packages hold no {pattern}; their layout has changed, please report this")


def link_to_own_libraries(root: Path, final_root: Path) -> None:
    """Make the program load the unpacked loader and libraries, as they will lie in `final_root`."""
    loader = one_of(root, "usr/lib*/ld-linux-*.so.*")
    libraries = one_of(root, "usr/lib/*/libc.so.6").parent
    patchelf = [loader, "--library-path", libraries, root / "usr/bin/patchelf"]
    program = root / "usr/bin/nvim"
    final_loader = final_root / loader.relative_to(root)
    final_libraries = final_root / libraries.relative_to(root)
    run([*patchelf, "--set-interpreter", final_loader, "--force-rpath", "--set-rpath", final_libraries, program])


def install(folder: Path, suites: list[str]) -> Path:
    """Unpack Neovim into `folder` and return the path of the program.

    The new tree takes its place by one rename, so that an interrupted run leaves nothing that looks whole.

    Raises:
        UnpackError: No suite of any mirror gives a Neovim that runs; the message lists every reason.
    """
    root, program = folder / "root", folder / "root" / "usr" / "bin" / "nvim"
    folder.mkdir(parents=True, exist_ok=True)
    reasons: list[str] = []
    for mirror in debian_mirrors():
        for suite in suites:
            with tempfile.TemporaryDirectory(dir=folder, prefix="unpacking-") as temporary:
                fresh = Path(temporary) / "root"
                try:
                    unpack(mirror, suite, Path(temporary), fresh)
                    link_to_own_libraries(fresh, root)
                except UnpackError as error:
                    reasons.append(f"{suite}: {error}")
                    continue
                shutil.rmtree(root, ignore_errors=True)
                fresh.rename(root)
            version = installed_version(program)
            if version is not None and version >= NEEDED_VERSION:
                return program
            reasons.append(f"{suite}: the unpacked program does not run ({program} --version fails)")
    raise UnpackError("no Neovim could be unpacked:\n" + "\n".join(reasons))


def main() -> int:
    """Run the command line; the exit status is 0 if the last line printed is the path of a working Neovim."""
    parser = argparse.ArgumentParser(description="Unpack a recent Neovim from newer Debian packages.")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where (default: %(default)s)")
    parser.add_argument("--suite", action="append", help="Debian suite, may be repeated (default: testing, then sid)")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    program = folder / "root" / "usr" / "bin" / "nvim"
    version = installed_version(program)
    if version is not None and version >= NEEDED_VERSION:
        print(program)
        return 0
    try:
        print(install(folder, arguments.suite or ["testing", "sid"]))
    except UnpackError as error:
        print(f"unpack_neovim: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
