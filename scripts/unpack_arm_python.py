"""Unpack a 64-bit Arm Python with draftline's dependencies, and an emulator to run it, into a private folder.

`python scripts/unpack_arm_python.py` prints progress and, as its last line, the path of a program that runs like
`python3.11`; the variable QEMU_CPU names the emulated processor. It needs apt, dpkg and pip, no root, the mirror that
apt already uses and PyPI. A second run finds the program and does nothing, until dependencies change.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from unpack_neovim import UnpackError, debian_mirrors, private_apt, run

CHECKOUT = Path(__file__).resolve().parent.parent
DEFAULT_FOLDER = CHECKOUT / ".cache" / "arm"
SUITE = "bookworm"  # the release with Python 3.11
EMULATOR = "qemu-user-static"
PACKAGES = (
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "libgcc-s1", "libstdc++6"),
    *("libbz2-1.0", "libcrypt1", "libdb5.3", "libexpat1", "libffi8", "liblzma5", "libssl3", "libsqlite3-0"),
    *("libuuid1", "media-types", "zlib1g"),
)
WHEELS = ("2_17", "2_27", "2_28", "2_34")  # of the C libraries that wheels may need; this release has 2.36


def download(architecture: str | None, packages: tuple[str, ...], work: Path, root: Path) -> None:
    """Download packages and unpack them into `root`."""
    options = private_apt(work, debian_mirrors()[0], SUITE, architecture)
    run(["apt-get", *options, "-q", "update"])
    archives = work / "archives"
    archives.mkdir()
    run(["apt-get", *options, "-q", "download", *packages], cwd=archives)
    for archive in sorted(archives.glob("*.deb")):
        run(["dpkg", "-x", archive, root])


def dependencies() -> list[str]:
    """Return what a CPU installation of draftline depends on."""
    found: list[str] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]
    return found


def install_wheels(target: Path) -> None:
    """Install the dependencies as wheels for Arm, with the tested versions."""
    platforms = [word for version in WHEELS for word in ("--platform", f"manylinux_{version}_aarch64")]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", target]
    choice = ["--constraint", CHECKOUT / "constraints.txt", "--only-binary=:all:", "--python-version", "3.11"]
    run([*pip, *choice, *platforms, *dependencies()])


def write_program(folder: Path) -> Path:
    """Write the program, which is its own `sys.executable`: processes that it starts are emulated as well."""
    program = folder / "python"
    lines = (
        "#!/bin/sh",
        f"export QEMU_LD_PREFIX='{folder}/system' PYTHONHOME='{folder}/system/usr'",
        f'export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{folder}/packages"',
        f"emulator='{folder}/emulator/usr/bin/qemu-aarch64-static'",
        f"exec \"$emulator\" -0 '{program}' '{folder}/system/usr/bin/python3.11' \"$@\"",
    )
    program.write_text("\n".join(lines) + "\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def install(folder: Path) -> Path:
    """Unpack everything into `folder` and return the path of the program.

    Raises:
        UnpackError: A package is missing, or the program does not run.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, architecture, packages in (("emulator", None, (EMULATOR,)), ("system", "arm64", PACKAGES)):
        print(f"downloading {len(packages)} packages of Debian {SUITE} …", flush=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            download(architecture, packages, Path(work), folder / name)
    print("downloading wheels for Arm …", flush=True)
    install_wheels(folder / "packages")
    program = write_program(folder)
    found = run([program, "-c", "import platform, numba; print(platform.machine())"]).strip()
    if found != "aarch64":
        raise UnpackError(f"The unpacked Python runs on {found!r}, not on aarch64.")
    return program


def main() -> int:
    """Run the command line. Return 0 if the last line is the path of a working program, else 1."""
    parser = argparse.ArgumentParser(description="Unpack an emulated 64-bit Arm Python with draftline's dependencies.")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="target folder (default: %(default)s)")
    folder: Path = parser.parse_args().folder.resolve()
    wanted = "\n".join(dependencies()) + (CHECKOUT / "constraints.txt").read_text(encoding="utf-8")
    stamp, program = folder / "dependencies", folder / "python"
    try:
        if not (stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted and os.access(program, os.X_OK)):
            install(folder)
            stamp.write_text(wanted, encoding="utf-8")
    except UnpackError as error:
        print(f"unpack_arm_python: {error}", file=sys.stderr)
        return 1
    print(program)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
