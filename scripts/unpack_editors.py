"""Unpack other people's editors from newer Debian packages into a private folder, without changes to the system.

`python scripts/unpack_editors.py` prints progress and, as its last line, their paths as JSON. It needs what
`unpack_neovim.py` needs. A second run finds the programs and does nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from unpack_neovim import UnpackError, debian_mirrors, link_to_own_libraries, unpack

PACKAGES = ("emacs-nox", "elpa-lsp-mode", "elpa-company", "hx", "vim", "vim-ale", "patchelf")
PROGRAMS = {
    "emacs": "usr/bin/emacs-nox",
    "emacsclient": "usr/bin/emacsclient.emacs",
    "hx": "usr/bin/hx",
    "vim": "usr/bin/vim.basic",
}
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / ".cache" / "editors"
SUITE = "testing"


def install(folder: Path) -> None:
    """Unpack the editors into `folder`; one rename puts the new folder in place.

    Raises:
        UnpackError: A package cannot be had, or does not have its program.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="unpacking-") as temporary:
        fresh = Path(temporary) / "root"
        unpack(debian_mirrors()[0], SUITE, Path(temporary), fresh, PACKAGES)
        for program in PROGRAMS.values():
            link_to_own_libraries(fresh, folder / "root", program)
        shutil.rmtree(folder / "root", ignore_errors=True)
        fresh.rename(folder / "root")


def main() -> int:
    """Run the command line. Return 0 if the last line has the paths, else 1."""
    parser = argparse.ArgumentParser(description="Unpack other people's editors from newer Debian packages.")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="target folder (default: %(default)s)")
    folder: Path = parser.parse_args().folder.resolve()
    root = folder / "root"
    try:
        if not all((root / program).exists() for program in PROGRAMS.values()):
            install(folder)
    except UnpackError as error:
        print(f"unpack_editors: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"root": str(root), **{name: str(root / program) for name, program in PROGRAMS.items()}}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
