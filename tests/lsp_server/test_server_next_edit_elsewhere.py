"""Next edits of the real server in another open document than the edited one, asked for by a real client."""

import asyncio

import pytest
from lsprotocol import types

from lsp_server.editing.next_edits import MAX_OTHERS
from lsp_server.messages import NextEditQuery
from lsp_server.server import create_server
from tests.lsp_server.real_client import steps

STORE, MAIN, OTHER = "file:///nowhere/store.py", "file:///nowhere/main.py", "file:///nowhere/other.py"
DEFINED = "def load_all(path):\n    return open(path).read()\n"
USED = "from store import load_all\n\nprint(load_all('a'))\n"
RENAMED = [line.replace("load_all", "read_all") for line in USED.splitlines() if "load_all" in line]


async def ask(client, uri=STORE, method="draftline/nextEdit", kind=2):
    params = {"textDocument": {"uri": uri}, "context": {"triggerKind": kind}}
    return (await client.lsp.protocol.send_request_async(method, params)).edits


async def run(client, command, *arguments):
    await client.lsp.workspace_execute_command_async(types.ExecuteCommandParams(command, list(arguments)))


def apply(client, edit):
    """Apply an edit as a client does, without telling that it was accepted."""
    span = edit.range
    start, end = ((at.line, at.character) for at in (span.start, span.end))
    client.change(edit.textDocument.uri, edit.textDocument.version + 1, start, end, edit.text)


@pytest.fixture
async def renamed(paced, start_client):
    """A client that has renamed a function which another open document uses."""
    paced.gated = False

    async def start(used=USED, language="python", defined=DEFINED, **options):
        client = await start_client(prepare_ms=0, **options)
        await client.ready()
        client.open(MAIN, used, language)
        client.open(STORE, defined)
        client.change(STORE, 2, (0, 4), (0, 12), "read_all")
        return client

    return start


async def test_an_edit_of_another_document_names_it_its_version_and_its_text(renamed):
    edits = await ask(await renamed())
    assert [edit.text for edit in edits] == RENAMED
    assert {(edit.textDocument.uri, edit.textDocument.version) for edit in edits} == {(MAIN, 1)}
    assert edits[0].oldText == "from store import load_all"


async def test_a_client_that_expects_edits_of_one_document_gets_those_of_the_requested_one_only(renamed):
    client = await renamed()
    assert await ask(client, STORE, "textDocument/copilotInlineEdit") == []
    edits = await ask(client, MAIN, "textDocument/copilotInlineEdit")
    assert [edit.text for edit in edits] == RENAMED


async def test_a_file_in_c_and_its_header_which_clients_take_for_cpp_change_together(paced, start_client):
    paced.gated = False
    client = await start_client(prepare_ms=0)
    await client.ready()
    client.open(HEADER := "file:///nowhere/store.h", "int load_all(int path);\n", "cpp")
    client.open(SOURCE := "file:///nowhere/store.c", "int load_all(int path) {\n  return path;\n}\n", "c")
    client.change(HEADER, 2, (0, 4), (0, 12), "read_all")
    (edit,) = await ask(client, HEADER)
    assert (edit.textDocument.uri, edit.text) == (SOURCE, "int read_all(int path) {")


async def test_of_many_open_documents_those_alone_are_looked_at_that_edits_may_be_in(runtime):
    session, consulted = create_server().session, []

    async def consult(uri):
        consulted.append(uri)

    session.policy._consult = consult
    uris = [f"file:///nowhere/{number}.py" for number in range(50)]
    for uri in uris:
        session.documents.open(types.TextDocumentItem(uri, "python", 1, USED))
    assert await session.next_edits(NextEditQuery(uris[0], None, invoked=True), elsewhere=True) == {"edits": []}
    assert consulted == [uris[0], *reversed(uris[-MAX_OTHERS:])]


async def test_what_the_edited_document_itself_needs_goes_first(renamed):
    client = await renamed(defined=f"{DEFINED}\n\nprint(load_all('b'))\n")
    (edit,) = await ask(client)
    assert edit.textDocument.uri == STORE
    apply(client, edit)
    assert {edit.textDocument.uri for edit in await ask(client)} == {MAIN}


async def test_from_the_other_document_the_rest_of_it_follows_then_a_third_one(renamed):
    client = await renamed()
    client.open(OTHER, USED)
    seen, at = [], STORE
    for _ in range(4):
        edit = (await ask(client, at))[0]
        apply(client, edit)
        at = edit.textDocument.uri
        seen.append((at, edit.text))
    assert sorted(seen) == sorted((uri, text) for uri in (MAIN, OTHER) for text in RENAMED)
    assert [uri for uri, _ in seen] in ([MAIN, MAIN, OTHER, OTHER], [OTHER, OTHER, MAIN, MAIN])
    assert await ask(client, at) == []


async def test_the_document_that_was_changed_last_goes_first(renamed):
    client = await renamed()
    client.open(OTHER, USED)
    client.change(MAIN, 2, (1, 0), (1, 0), "# changed\n")
    assert (await ask(client))[0].textDocument.uri == MAIN


async def test_a_refused_edit_of_another_document_never_comes_back(renamed):
    client = await renamed()
    first, second = await ask(client)
    await run(client, "draftline.nextEditRefused", first.id)
    (left,) = await ask(client)
    assert left.text == second.text


async def test_an_undone_edit_of_another_document_comes_back_on_request_only(renamed):
    client = await renamed()
    first, second = await ask(client)
    apply(client, first)
    await run(client, first.command.command, first.id)
    client.change(MAIN, 3, (0, 0), (0, len(first.text)), first.oldText)
    assert [edit.text for edit in await ask(client)] == [second.text]
    assert [edit.text for edit in await ask(client, kind=1)] == [first.text, second.text]


@pytest.mark.parametrize(("changed", "at"), [(MAIN, (1, 0)), (STORE, (2, 0))])
async def test_what_is_found_for_texts_of_which_one_has_changed_meanwhile_is_dropped(paced, renamed, changed, at):
    client = await renamed()
    paced.gated = True
    asked = asyncio.ensure_future(ask(client))
    assert await asyncio.to_thread(paced.began.acquire, timeout=60)
    steps(paced, 1)  # the edited document itself needs nothing
    assert await asyncio.to_thread(paced.began.acquire, timeout=60)
    client.change(changed, 3 if changed == STORE else 2, at, at, "# ")
    await run(client, "draftline.resume")  # it has read the change
    steps(paced, 1)
    assert await asked == []


@pytest.mark.parametrize(
    "options",
    [
        {"language": "ruby"},
        {"used": USED + "\n\ndef load_all(path): ...\n"},
        {"used": USED.replace("load_all", "loads_all")},
        {"used": USED + "#" * 100_000},
    ],
    ids=["of another language", "with a definition of its own", "without the name", "too long"],
)
async def test_a_document_with_another_name_of_another_language_or_size_gets_nothing(renamed, options):
    assert await ask(await renamed(**options)) == []


async def test_a_document_that_is_switched_off_gets_nothing(renamed):
    client = await renamed()
    await run(client, "draftline.switch", "file", MAIN, "off")
    assert await ask(client) == []
