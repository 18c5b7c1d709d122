"""A text that exhausts a parser ends the child process; the caller gets an error."""

import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from contextvars import copy_context

import psutil
import pytest

from completion.cancellation import CancelToken
from completion.edits import NextEditRequest
from completion.errors import CancelledError, ParseLimitError
from completion.grammar.parsed_documents import open_document, skippable_parts
from completion.next_edit.edited_nodes import syntax_of_changes
from completion.next_edit.rewrites import Candidate
from completion.syntax.parsing.process import ParserProcess
from completion.workspace.code_only import code_by_marks
from completion.workspace.context import IndexedFile, _code_and_definitions
from completion.workspace.definitions import definitions, import_statements, imports
from tests.completion.syntax.forged_answers import forge

HOSTILE = {
    "angle brackets": ("java", "A<" * 30_000),
    "arrows": ("java", "A=>" * 10_000),
    "comment openers": ("python", "/*\n" * 5_000),
}
SMALL = ("def f(): pass\n", "python")

SCRIPT = """
import resource, sys
from completion.edits import NextEditRequest
from completion.errors import ParseLimitError
from completion.syntax.parsing.process import ParserProcess
from completion.workspace.definitions import definitions

parser = ParserProcess(cpu_limit_s=60, memory_limit_bytes=200_000_000, by_kernel=sys.argv[1] == "kernel")
try:
    parser(definitions, "A<" * 30_000, "java")
except ParseLimitError:
    parser.close()
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def children():
    """Return this process's children. Those that earlier tests left end when they like."""
    return set(psutil.Process().children())


@pytest.fixture(params=["kernel", "parent"])
def parser(request):
    """A parser process with a low limit on CPU time, which the kernel or the parent enforces."""
    process = ParserProcess(cpu_limit_s=0.5, by_kernel=request.param == "kernel")
    yield process
    process.close()


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_text_raises_a_parse_limit_error_and_the_next_text_is_parsed(parser, kind):
    language, text = HOSTILE[kind]
    with pytest.raises(ParseLimitError, match="CPU time"):
        parser(definitions, text, language)
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]


def test_the_child_that_was_started_early_serves_the_first_call(parser):
    others = children()
    parser.start()
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    assert len(children() - others) == 1


def test_the_child_rests_until_it_is_needed(parser):
    others = children()
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    (child,) = children() - others
    parser.rest()
    child.wait(60)
    parser.watch(CancelToken())
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    parser.rest()
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    assert len(children() - others) == 1


def test_closing_a_child_that_rests_leaves_none(parser):
    others = children()
    parser(len, "")
    parser.rest()
    parser.close()
    assert not children() - others


def test_closing_while_the_child_starts_leaves_none(parser):
    others = children()
    parser.start()
    parser.close()
    assert not children() - others


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces RLIMIT_AS")
@pytest.mark.parametrize(("bound", "most_bytes"), [("kernel", 200_000_000), ("parent", 400_000_000)])
def test_the_memory_of_a_parse_is_bounded(bound, most_bytes):
    """The parent sees the memory a moment after it is taken."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, bound], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) <= most_bytes


def test_calls_for_a_document_that_exceeded_a_bound_are_refused_and_others_run(parser):
    parser.watch(CancelToken(), "hostile.java")
    with pytest.raises(ParseLimitError, match="CPU time"):
        parser(definitions, HOSTILE["arrows"][1], "java")
    with pytest.raises(ParseLimitError, match="refused"):
        parser(definitions, *SMALL)
    parser.watch(CancelToken(), "other.py")
    assert parser(definitions, *SMALL)


def test_a_cancelled_call_returns_before_its_text_is_parsed():
    parser, cancel, outcome = ParserProcess(cpu_limit_s=60), CancelToken(), []

    def call():
        parser.watch(cancel)
        with pytest.raises(CancelledError) as raised:
            parser(definitions, HOSTILE["arrows"][1], "java")
        outcome.append(raised.value)

    caller = threading.Thread(target=call)
    caller.start()
    cancel.cancel()
    caller.join()
    parser.close()
    assert outcome


def test_a_stopped_child_is_replaced():
    parser = ParserProcess()
    first, wall_limit_s = parser(os.getpid), parser._wall_limit_s
    os.kill(first, signal.SIGSTOP)
    parser._wall_limit_s = 0.1
    with pytest.raises(ParseLimitError):
        parser(os.getpid)
    parser._wall_limit_s = wall_limit_s  # its successor must start in this time, on a busy machine too
    assert parser(os.getpid) not in (first, os.getpid())
    parser.close()


def test_the_child_imports_what_parses_and_no_other_large_modules(parser):
    text, language = SMALL
    IndexedFile.of("file.py", text, parser)
    parser(open_document, language, text.encode(), len(text))
    parser(syntax_of_changes, NextEditRequest((text,), (), language), [])
    imported = set(parser(eval, "[*__import__('sys').modules]"))
    large = {"numpy", "asyncio", "concurrent.futures", "hashlib", "logging", "subprocess", "completion.ending.decision"}
    assert not large & imported


@pytest.mark.skipif(sys.platform != "linux", reason="as glibc does")
def test_the_child_keeps_no_memory_of_texts_that_it_has_parsed(parser):
    child = psutil.Process(parser(os.getpid))
    before = child.memory_info().rss
    for size in (9_000_000, 8_000_000, 7_000_000):
        assert parser(len, bytes(size)) == size
    assert parser(os.getpid) == child.pid  # the child has left the call before
    assert child.memory_info().rss - before < 3_000_000


def test_an_error_of_the_function_is_named_to_the_caller_without_text_of_the_document(parser):
    with pytest.raises(RuntimeError, match=r"divmod failed with ZeroDivisionError in"):
        parser(divmod, 1, 0)
    with pytest.raises(RuntimeError) as raised:
        parser(int, "secret")
    assert "secret" not in str(raised.value)


def message(data):
    return struct.pack("<Q", len(data)) + data


class Harm:
    def __reduce__(self):
        return (os.mkdir, ("taken-over",))


@pytest.mark.parametrize(
    "forged",
    [
        message(pickle.dumps((True, Harm()))),
        message(b"tru"),
        message(b"null"),
        message(b'"yes, of course"'),
        message(b"[true]"),
        message(b"[" * 100_000),
        message(b"9" * 5000),
        struct.pack("<Q", 1 << 62) + b"x",
        b"",
        random.Random(0).randbytes(1000),
    ],
    ids=range(10),
)
def test_an_answer_that_is_none_is_read_as_data_and_refused(parser, forged, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParseLimitError):
        parser(forge, forged)
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    assert not [*tmp_path.iterdir()]


def test_results_are_of_the_types_that_the_functions_declare(parser):
    text, language = "from a import b\ndef f(x):\n    return g(x)\n", "python"
    change = Candidate(2, ("    return g(x)",), ("    return 1",), frozenset(), 0, 4, (2, 4))
    calls = [
        (definitions, text, language),
        (imports, text, language),
        (import_statements, text, language),
        (skippable_parts, language, text.encode(), 30),
        (syntax_of_changes, NextEditRequest(tuple(text.splitlines()), (), language), [change]),
        (_code_and_definitions, text, language),
        (code_by_marks, text, language),
        (open_document, language, text.encode(), 30),
    ]
    for function, *arguments in calls:
        assert parser(function, *arguments) == function(*arguments)


def test_no_child_outlives_a_killed_parent():
    script = (
        "import os, signal\n"
        "from completion.syntax.parsing.process import ParserProcess\n"
        "print(ParserProcess()(os.getpid), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    child = int(done.stdout)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(child).wait(60)
    assert not psutil.pid_exists(child)


def test_requests_that_take_turns_watch_their_own_tokens_and_documents(parser):
    contexts = {name: copy_context() for name in ("hostile", "cancelled", "other")}
    cancelled = CancelToken()
    cancelled.cancel()
    for name, context in contexts.items():
        context.run(parser.watch, cancelled if name == "cancelled" else CancelToken(), name)
    language, text = HOSTILE["arrows"]
    for _ in range(2):  # the second call is refused
        with pytest.raises(ParseLimitError):
            contexts["hostile"].run(parser, definitions, text, language)
    with pytest.raises(CancelledError):
        contexts["cancelled"].run(parser, definitions, *SMALL)
    assert [found.name for found in contexts["other"].run(parser, definitions, *SMALL)] == ["f"]
    with pytest.raises(ParseLimitError, match="refused"):
        contexts["hostile"].run(parser, definitions, *SMALL)


MOST_CPU_S = 4
"""Bound on the CPU time of cancelled calls, in seconds: half of what one takes by itself on a fast processor."""


def childrens_cpu_s():
    """Return the CPU time of children that have ended."""
    return os.times().children_user + os.times().children_system


class CancelledWhileItWaits(CancelToken):
    """It is cancelled when its caller checks it the second time: while it waits for the child."""

    checks = 0

    def raise_if_cancelled(self):
        self.checks += 1
        if self.checks > 1:
            self.cancel()
        super().raise_if_cancelled()


def cancelled_keys(parser, count, text, language):
    for number in range(count):
        parser.watch(CancelledWhileItWaits(), "typed")
        with pytest.raises(CancelledError):
            parser(definitions, f"{text}{number}", language)


def test_what_is_cancelled_leaves_the_child_soon_and_others_are_parsed_meanwhile():
    parser = ParserProcess(cpu_limit_s=60)
    child = psutil.Process(parser(os.getpid))
    before = childrens_cpu_s()
    cancelled_keys(parser, 20, "A=>" * 10_000, "java")  # each takes ten seconds
    child.wait(60)
    assert childrens_cpu_s() - before < MOST_CPU_S
    parser.watch(CancelToken(), "other.py")
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    assert not parser._pipe_thread._work_queue.qsize()
    parser.close()


def test_a_call_that_is_cancelled_while_its_child_starts_is_ended(monkeypatch):
    """Where the kernel does not bound the child, nothing else ends it, and what is parsed next waits for it."""
    before = childrens_cpu_s()
    parser, popen, is_cancelled = ParserProcess(cpu_limit_s=60, by_kernel=False), subprocess.Popen, threading.Event()
    with pytest.raises(ParseLimitError):
        parser(forge, message(b"null"))  # the next call starts another child

    def slow(*arguments, **named):
        is_cancelled.wait()
        return popen(*arguments, **named)

    monkeypatch.setattr(subprocess, "Popen", slow)
    cancelled_keys(parser, 1, "A=>" * 10_000, "java")  # ten seconds
    is_cancelled.set()
    parser.watch(CancelToken(), "other.py")
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    parser.close()
    assert childrens_cpu_s() - before < MOST_CPU_S


def test_an_ordinary_text_whose_key_is_cancelled_does_not_end_the_child(parser):
    child = parser(os.getpid)
    for _ in range(3):
        parser._pipe_thread.submit(threading.Event().wait, 0.03)  # so that the caller waits for the child
        cancelled_keys(parser, 1, *SMALL)
        parser.watch(CancelToken())
        assert parser(os.getpid) == child


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the child")
def test_the_child_writes_no_file_and_gets_no_other_privileges(tmp_path):
    parser = ParserProcess()
    with pytest.raises((RuntimeError, ParseLimitError)):
        parser(eval, f"open({str(tmp_path / 'file')!r}, 'wb', buffering=0).write(b'x')")
    status = parser(eval, "open('/proc/self/status').read()")
    assert "NoNewPrivs:\t1" in status
    assert not any(path.stat().st_size for path in tmp_path.iterdir())
    parser.close()
