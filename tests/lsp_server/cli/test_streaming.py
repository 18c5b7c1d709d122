"""What `draftline complete` prints while a suggestion grows, in a terminal and in a pipe."""

import asyncio
import io

import pytest
from rich.console import Console

from completion.errors import CancelledError
from completion.request import CompletionEvent, CompletionRequest, Suggestion
from lsp_server.cli.main import main
from lsp_server.cli.streaming import coloured_pieces, print_after, print_before, stream_completion, write_code
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions
from tests.completion.host.paced_engine import PacedEngine
from tests.lsp_server.conftest import host_with

GO = "for i := range x {\n\t\tf(i,\tx)\n\t}\n"
CRLF = "if x:\r\n\treturn\r\n"


class SpeakingEngine(PacedEngine):
    """An engine that shows one text after the other."""

    def __init__(self, texts):
        super().__init__()
        self.texts = texts

    def complete(self, request, cancel):
        for number, text in enumerate(self.texts, 1):
            yield CompletionEvent((Suggestion(text),) if text else (), done=number == len(self.texts))


async def printed(texts, console):
    """Return what is printed of a completion with these texts."""
    async with host_with(SpeakingEngine(texts)):
        client = EngineClient(EngineOptions(model="paced"))
        shown = await stream_completion(client, CompletionRequest("x"), console)
        await client.close()
    assert shown.suggestion.text == texts[-1]
    return console.file.getvalue()


@pytest.fixture
def pipe(runtime):
    return Console(file=io.StringIO(), highlight=False)


@pytest.fixture
def terminal(runtime):
    return Console(file=io.StringIO(), highlight=False, force_terminal=True, color_system=None)


@pytest.mark.parametrize("texts", [["for", GO], ["len(items)", "sum(prices)\n"], [CRLF], ["len", ""]])
async def test_a_pipe_gets_the_suggestion_and_nothing_else(pipe, texts):
    assert await printed(texts, pipe) == texts[-1]


async def test_a_pipe_gets_the_line_ends_of_the_suggestion_where_files_have_others():
    written = io.BytesIO()
    with io.TextIOWrapper(written, "utf-8", newline="\r\n") as file:
        write_code(Console(file=file), CRLF + GO)
        file.flush()
        assert written.getvalue() == (CRLF + GO).encode()


async def test_a_pipe_gets_the_suggestion_in_utf_8_where_texts_have_another_encoding():
    written = io.BytesIO()
    with io.TextIOWrapper(written, "ascii") as file:
        write_code(Console(file=file), "print('→ é')")
        file.flush()
        assert written.getvalue() == "print('→ é')".encode()


async def test_a_terminal_gets_the_text_as_it_grows(terminal):
    assert await printed(["for i", GO[:20], GO[:22], GO], terminal) == GO


@pytest.mark.parametrize(
    ("texts", "shown"), [(["len(items)", "sum(pr", "sum(prices)"], "len(items)\nsum(prices)"), (["len", ""], "len\n")]
)
async def test_a_terminal_shows_a_text_that_replaces_another_on_a_new_line(terminal, texts, shown):
    assert await printed(texts, terminal) == shown


def test_the_lines_around_the_cursor_are_printed_as_they_are(terminal):
    print_before(terminal, "a\n\tb(\t", 1)
    print_after(terminal, "\tc)\n\td\n", 1)
    assert terminal.file.getvalue() == "\tb(\t\tc)\n"


async def test_a_terminal_obeys_no_control_characters_of_a_file_or_of_a_suggestion(terminal):
    hostile = "a\x1b]0;title\x07\x1b[31m\x9b2J\x7f\r"
    assert await printed([f"{hostile}b"], terminal) == "a]0;title[31m2Jb"
    print_before(terminal, hostile, 1)
    print_after(terminal, hostile, 1)
    pieces, _ = coloured_pieces(Suggestion(hostile, pieces=(("model", hostile),)))
    assert not set(f"{terminal.file.getvalue()}{pieces}") & set("\x1b\x07\x9b\x7f\r")


class EndingEngine(SpeakingEngine):
    """An engine whose host ends after the first text."""

    def complete(self, request, cancel):
        yield CompletionEvent((Suggestion(self.texts[0]),))
        raise CancelledError("The host stops.")


@pytest.mark.parametrize("options", [[], ["--json"]])
async def test_half_a_completion_is_an_error_and_is_not_printed(runtime, tmp_path, capsys, options):
    (tmp_path / "a.py").write_text("x = \n")
    async with host_with(EndingEngine(["len("])):
        arguments = ["complete", f"{tmp_path / 'a.py'}:1:5", "--model", "paced", *options]
        status = await asyncio.to_thread(main, arguments)
    printed = capsys.readouterr()
    assert (status, printed.out) == (1, "")
    assert "ended before the completion was done" in printed.err
