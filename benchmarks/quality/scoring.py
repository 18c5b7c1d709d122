"""Scores of a completion: exact match, edit similarity, first line, and pass@1 in a process with limits."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

TIME_LIMIT_S = 10
"""Time limit of a program."""
MEMORY_LIMIT_BYTES = 1 << 30
"""Memory limit of a program."""

# The child writes its token after the last line of the program, so a completion that calls exit() does not pass.
_CHILD = """
import resource, runpy, sys
program, proof, token, seconds, memory = sys.argv[1:]
sys.argv = [program]
for limit, value in (("CPU", int(seconds)), ("AS", int(memory)), ("FSIZE", 1 << 24), ("CORE", 0), ("NPROC", 64)):
    kind = getattr(resource, "RLIMIT_" + limit)
    resource.setrlimit(kind, (value, value))
runpy.run_path(program, run_name="__main__")
open(proof, "w").write(token)
"""


@dataclass(frozen=True, slots=True)
class Score:
    """Scores of one completion from 0 to 1.

    Attributes:
        passed: Whether the program ran to its end; None where no tests ran.
        offered: Number of characters of the first line.
        right: The same if the document continues with this line, else 0.
        added_errors: Whether the file has more syntax errors than before; None without a grammar, or if the reference
            itself adds some.
    """

    exact_match: float
    edit_similarity: float
    first_line: float
    passed: float | None = None
    offered: int = 0
    right: int = 0
    added_errors: float | None = None


def score(completion: str, reference: str, program: str | None) -> Score:
    """Compare a completion with its reference, without trailing blanks.

    Args:
        completion: Suggested text.
        reference: Text of the document.
        program: Python program with the completion and its tests, None to run no program.
    """
    got, wanted = completion.rstrip(), reference.rstrip()
    line, expected = first_line(got), first_line(wanted)
    is_right = line == expected if "\n" in got.strip() else expected.startswith(line)
    return Score(
        exact_match=float(got == wanted),
        edit_similarity=1.0 if got == wanted else SequenceMatcher(None, got, wanted, autojunk=False).ratio(),
        first_line=float(line == expected),
        passed=None if program is None else float(runs_to_its_end(program)),
        offered=len(line),
        right=len(line) * is_right,
    )


def first_line(text: str) -> str:
    """Return the first line that is not blank, without trailing blanks; "" if there is none."""
    return next((line.rstrip() for line in text.splitlines() if line.strip()), "")


def _kill_with_children(child: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it has started, if any of them still runs."""
    if sys.platform == "win32":  # it has no groups of processes
        child.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def runs_to_its_end(program: str) -> bool:
    """Run a Python program with limits on time, memory and files. Return whether it reached its last line.

    The limits contain accidents. They do not contain malicious code, so run the benchmark in a container.
    """
    with tempfile.TemporaryDirectory(prefix="draftline-score-") as folder:
        source, proof = Path(folder, "program.py"), Path(folder, "proof")
        source.write_text(program, encoding="utf-8", errors="replace")
        token = secrets.token_hex(16)
        limits = [str(TIME_LIMIT_S), str(MEMORY_LIMIT_BYTES)]
        child = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _CHILD, str(source), str(proof), token, *limits],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": os.environ.get("PATH", ""), "HOME": folder, "TMPDIR": folder, "PYTHONHASHSEED": "0"},
            start_new_session=True,
        )
        try:
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=TIME_LIMIT_S)
        finally:
            _kill_with_children(child)
            child.wait()
        return child.returncode == 0 and proof.is_file() and proof.read_text() == token
