"""A text that exhausts a parser ends the child process; the caller gets an error."""

import os
import signal
import subprocess
import sys
import threading
from contextvars import copy_context

import psutil
import pytest

from completion.cancellation import CancelToken
from completion.errors import CancelledError, ParseLimitError
from completion.grammar.parsed_documents import cache_document
from completion.syntax.edited_nodes import syntax_of_changes
from completion.syntax.enclosing_body import is_within_expression
from completion.syntax.enclosing_literal import enclosing_literal
from completion.syntax.parsing.process import ParserProcess
from completion.workspace.context import IndexedFile
from completion.workspace.definitions import definitions

HOSTILE = {
    "angle brackets": ("java", "A<" * 30_000),
    "arrows": ("java", "A=>" * 10_000),
    "comment openers": ("python", "/*\n" * 5_000),
}
SMALL = ("def f(): pass\n", "python")

SCRIPT = """
import resource, sys
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
    others = psutil.Process().children()
    parser.start()
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    assert len(psutil.Process().children()) == len(others) + 1


def test_the_child_rests_until_it_is_needed(parser):
    others = psutil.Process().children()
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    (child,) = set(psutil.Process().children()) - set(others)
    parser.rest()
    child.wait(10)
    parser.watch(CancelToken())
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    parser.rest()
    assert [found.name for found in parser(definitions, *SMALL)] == ["f"]
    assert len(psutil.Process().children()) == len(others) + 1


def test_closing_a_child_that_rests_leaves_none(parser):
    others = psutil.Process().children()
    parser(len, "")
    parser.rest()
    parser.close()
    assert psutil.Process().children() == others


def test_closing_while_the_child_starts_leaves_none(parser):
    others = psutil.Process().children()
    parser.start()
    parser.close()
    assert psutil.Process().children() == others


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
    parser = ParserProcess(wall_limit_s=3.0)  # in which its successor must start, on a busy machine too
    first = parser(os.getpid)
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(ParseLimitError):
        parser(os.getpid)
    assert parser(os.getpid) not in (first, os.getpid())
    parser.close()


def test_the_child_imports_what_parses_and_no_other_large_modules(parser):
    text, language = SMALL
    IndexedFile.of("file.py", text, parser)
    parser(cache_document, language, text.encode())
    parser(is_within_expression, text, "", language)
    parser(enclosing_literal, text, "", language)
    parser(syntax_of_changes, [text], text, language, [])
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


def test_an_error_of_the_function_is_raised_in_the_caller(parser):
    with pytest.raises(ZeroDivisionError):
        parser(divmod, 1, 0)


def test_no_child_outlives_a_killed_parent():
    script = (
        "import os, signal\n"
        "from completion.syntax.parsing.process import ParserProcess\n"
        "print(ParserProcess()(os.getpid), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    child = int(done.stdout)
    if psutil.pid_exists(child):
        psutil.Process(child).wait(10)
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
