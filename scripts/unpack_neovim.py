"""Unpack a recent Neovim from newer Debian packages into a private folder, without changes to the system.

`python scripts/unpack_neovim.py` prints progress and, as its last line, the path of the program. It needs apt and dpkg,
no root, and the mirror that apt already uses. It unpacks the C library as well, so it works on any release of Debian. A
second run finds the program and does nothing.
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
PACKAGES = ("neovim", "patchelf")  # patchelf makes the program load the unpacked libraries
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / ".cache" / "neovim"
TIMEOUT_S = 300


class UnpackError(Exception):
    """Neovim could not be unpacked. The message says why and what to do."""


def run(command: list[str | Path], *, cwd: Path | None = None) -> str:
    """Run a command and return its standard output.

    Raises:
        UnpackError: The command is missing, fails, or takes longer than `TIMEOUT_S`.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise UnpackError(f"{words[0]} is not installed. This script needs the apt and dpkg of Debian.") from error
    except subprocess.TimeoutExpired as error:
        raise UnpackError(
            f"{words[0]} did not finish within {TIMEOUT_S} s. Check that the package mirror is reachable."
        ) from error
    if done.returncode != 0:
        raise UnpackError(f"`{' '.join(words)}` failed:\n{(done.stderr or done.stdout).strip()[-1500:]}")
    return done.stdout


def installed_version(program: Path) -> tuple[int, ...] | None:
    """Return the version of the Neovim at this path, None if it does not run."""
    if not program.exists():
        return None
    try:
        first_line = run([program, "--version"]).splitlines()[0]
    except (UnpackError, OSError, IndexError):
        return None
    return tuple(int(part) for part in first_line.removeprefix("NVIM v").split("-")[0].split(".")[:2])


def debian_mirrors() -> list[str]:
    """Return the addresses of the main archive of Debian in the configuration of apt.

    Raises:
        UnpackError: The configuration has no Debian archive.
    """
    lines = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)"]).splitlines()
    found: list[str] = []
    for line in lines:
        address, codename, component, origin = [*line.split(), "", "", "", ""][:4]
        of_debian = origin == "Debian" or "debian" in address  # apt knows the origin after its first update
        if component == "main" and of_debian and "security" not in address + codename and address not in found:
            found.append(address)
    if not found:
        raise UnpackError("apt has no Debian archive in its sources. Add one; `apt-get indextargets` must list it.")
    return found


def private_apt(folder: Path, mirror: str, suite: str, architecture: str | None = None) -> list[str]:
    """Write a private apt configuration into `folder` and return the apt-get options that select it.

    Packages are for this machine unless an architecture is named.
    """
    for name in ("state/lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()  # empty, so that all dependencies come from the newer suite, the C library included
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
    if architecture is not None:
        settings |= {"APT::Architecture": architecture, "APT::Architectures": architecture}
    if os.geteuid() == 0:
        settings["APT::Sandbox::User"] = "root"  # the user of apt may have no access to a private folder
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def package_names(options: list[str], packages: tuple[str, ...]) -> list[str]:
    """Return `name=version` of packages and of their dependencies in the newer suite."""
    plan = run(["apt-get", *options, "install", "--simulate", *packages])
    chosen = [line.split() for line in plan.splitlines() if line.startswith("Inst ")]
    return [f"{words[1]}={words[2].lstrip('(')}" for words in chosen]


def check_version(names: list[str]) -> None:
    """Check that Neovim, if it is among these packages, is new enough.

    Raises:
        UnpackError: It is not.
    """
    versions = [name.partition("=")[2] for name in names if name.startswith("neovim=")]
    if versions and tuple(int(part) for part in versions[0].split(".")[:2]) < NEEDED_VERSION:
        wanted = ".".join(map(str, NEEDED_VERSION))
        raise UnpackError(f"The suite has Neovim {versions[0]}; {wanted} or newer is needed.")


def unpack(mirror: str, suite: str, work: Path, root: Path, packages: tuple[str, ...] = PACKAGES) -> None:
    """Download packages and their dependencies from `suite` and unpack them into `root`."""
    options = private_apt(work, mirror, suite)
    print(f"reading the package list of Debian {suite} …", flush=True)
    run(["apt-get", *options, "-q", "update"])
    names = package_names(options, packages)
    check_version(names)
    print(f"downloading {len(names)} packages …", flush=True)
    archives = work / "archives"
    archives.mkdir()
    run(["apt-get", *options, "-q", "download", *names], cwd=archives)
    print("unpacking …", flush=True)
    for archive in sorted(archives.glob("*.deb")):
        run(["dpkg", "-x", archive, root])


def one_of(root: Path, pattern: str) -> Path:
    """Return the first file in `root` that matches `pattern`.

    Raises:
        UnpackError: No file matches.
    """
    for path in sorted(root.glob(pattern)):
        return path
    raise UnpackError(f"The packages have no file {pattern}. Their layout has changed; please report this.")


def link_to_own_libraries(root: Path, final_root: Path, name: str = "usr/bin/nvim") -> None:
    """Make a program load the unpacked loader and libraries from their later location in `final_root`."""
    loader = one_of(root, "usr/lib*/ld-linux-*.so.*")
    libraries = one_of(root, "usr/lib/*/libc.so.6").parent
    patchelf = [loader, "--library-path", libraries, root / "usr/bin/patchelf"]
    program = root / name
    final_loader = final_root / loader.relative_to(root)
    final_libraries = final_root / libraries.relative_to(root)
    run([*patchelf, "--set-interpreter", final_loader, "--force-rpath", "--set-rpath", final_libraries, program])


def install(folder: Path, suites: list[str]) -> Path:
    """Unpack Neovim into `folder` and return the path of the program.

    One rename puts the new folder in place, so that an interrupted run leaves no incomplete one.

    Raises:
        UnpackError: No suite of any mirror has a Neovim that runs. The message lists the reasons.
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
            reasons.append(f"{suite}: The unpacked program does not run: {program} --version fails.")
    raise UnpackError("No Neovim could be unpacked:\n" + "\n".join(reasons))


def main() -> int:
    """Run the command line. Return 0 if the last line is the path of a working Neovim, else 1."""
    parser = argparse.ArgumentParser(description="Unpack a recent Neovim from newer Debian packages.")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="target folder (default: %(default)s)")
    parser.add_argument(
        "--suite", action="append", help="suite of Debian, may be repeated (default: testing, then sid)"
    )
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
