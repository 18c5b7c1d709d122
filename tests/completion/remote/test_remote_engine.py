"""The engine over a model server gives the local engine's suggestions, from the recorded replies of a real server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from completion.cancellation import CancelToken
from completion.edits import NextEdits
from completion.errors import CancelledError, RemoteServerError
from completion.memory import MemoryPart
from completion.prompt.healing import heal
from completion.request import (
    CacheMode,
    Closing,
    CompletionRequest,
    GrammarMode,
    Mode,
    StopReason,
    WorkspaceFile,
    WorkspaceUpdate,
)
from tests.tiny_models import STACK

CURSORS = [
    STACK.index(text) + len(text)
    for text in ("self.items = ", "def push(sel", "raise Ind", "return self.it", "empty st")
]


def request_at(cursor, **changes):
    """Return a request for which a server generates 12 tokens: those of the text before the cursor may be as many."""
    max_tokens = 12 - len(heal(STACK[:cursor]).forced)
    request = CompletionRequest(
        STACK[:cursor],
        STACK[cursor:],
        "python",
        mode=Mode.BLOCK,
        max_tokens=max_tokens,
        cache=CacheMode.EXACT,
        drafting=False,
    )
    return replace(request, **changes)


def last(engine, request):
    return list(engine.complete(request, CancelToken()))[-1]


def forced_tokens(suggestion, request):
    """An upper bound of the number of tokens that the text before the cursor forces: one for each byte of its run."""
    return min(len(heal(request.prefix).forced), len(suggestion.token_log_probabilities))


@pytest.mark.parametrize("grammar", [GrammarMode.STRICT, GrammarMode.OFF])
@pytest.mark.parametrize("cursor", CURSORS)
def test_the_text_is_the_local_engines(remote, local, cursor, grammar):
    request = request_at(cursor, grammar=grammar, filters=False)
    theirs, ours = last(remote, request), last(local, request)
    assert [one.text for one in theirs.suggestions] == [one.text for one in ours.suggestions]
    assert theirs.stop_reason == ours.stop_reason
    for one, other in zip(theirs.suggestions, ours.suggestions, strict=True):
        forced = forced_tokens(one, request)
        remote_values, local_values = one.token_log_probabilities, other.token_log_probabilities
        assert remote_values[forced:] == pytest.approx(local_values[forced:], abs=0.01)
        # Of forced tokens only the likeliest are known, so the mass of the others is missing from the sum.
        assert all(local_values[i] - 0.01 <= remote_values[i] <= 0 for i in range(forced))


def test_the_output_starts_with_the_healed_run(remote, server):
    cursor = STACK.index("self.items.app") + len("self.items.app")
    events = list(remote.complete(request_at(cursor, filters=False), CancelToken()))
    assert events[-1].suggestions[0].text
    body = next(body for path, body in server.requests if path == "/completion")
    assert body["grammar"] == 'root ::= "\\U0000002E\\U00000061\\U00000070\\U00000070" .*'


def test_a_rejected_token_is_replaced_and_the_server_goes_on_from_there(remote, server):
    corrected = 0
    for cursor in CURSORS:
        before = len(server.requests)
        request = request_at(cursor, filters=False)
        event = last(remote, request)
        asked = [body["prompt"] for path, body in server.requests[before:] if path == "/completion"]
        corrected += len(asked) - 1
        assert all(len(later) > len(asked[0]) for later in asked[1:])
        assert event.statistics.grammar_rejections >= len(asked) - 1
    assert corrected > 0


def test_the_statistics_tell_what_the_server_computed(remote):
    statistics = last(remote, request_at(CURSORS[0], filters=False)).statistics
    assert statistics.prompt_tokens == statistics.kept_tokens + statistics.computed_tokens > 0
    assert statistics.first_text_ms >= statistics.prompt_ms > 0


def test_a_preparation_generates_nothing(remote, server):
    remote.prepare(request_at(CURSORS[0]), CancelToken())
    path, body = server.requests[-1]
    assert (path, body["n_predict"]) == ("/completion", 0)


def test_snippets_of_the_workspace_are_part_of_the_prompt(remote, server):
    other = WorkspaceFile("queue.py", "class Queue:\n    def push(self, item):\n        self.items.append(item)\n")
    for _ in remote.update_workspace(WorkspaceUpdate("w", (other,)), CancelToken()):
        pass
    request = request_at(CURSORS[2], workspace="w", path="stack.py", filters=False)
    remote.prepare(replace(request, workspace="", path=""), CancelToken())
    remote.prepare(request, CancelToken())
    without, with_snippet = (len(body["prompt"]) for path, body in server.requests if path == "/completion")
    assert with_snippet > without + 10
    remote.forget(Closing(workspaces=("w",)))
    remote.prepare(replace(request, path=""), CancelToken())
    assert len(server.requests[-1][1]["prompt"]) == without


def test_closing_the_last_document_unloads_the_grammars_and_forgets_what_was_kept_of_texts(remote):
    encoder = remote._tokenizer.tables.encoder
    last(remote, request_at(CURSORS[0], document="first"))
    last(remote, replace(request_at(CURSORS[0], document="last"), language="json"))

    def grammars_bytes():
        return remote.held()[MemoryPart.GRAMMARS].object_bytes

    both = grammars_bytes()
    remote.forget(Closing(("first",)))
    assert 0 < grammars_bytes() < both
    assert encoder._known
    remote.forget(Closing(("last",)))
    assert grammars_bytes() == 0
    assert not encoder._known


def test_the_grammar_of_an_open_document_stays_loaded_when_another_one_closes(remote):
    """An editor takes a header of Objective-C for one of C."""
    header = replace(request_at(CURSORS[0]), prefix="@interface A : B\n", suffix="@end\n", language="c")
    with pytest.raises(RemoteServerError, match="HTTP 599"):  # no such prompt was recorded
        remote.prepare(header, CancelToken())
    remote.forget(Closing(("another",)))
    assert remote.held()[MemoryPart.GRAMMARS].object_bytes > 0


def test_nothing_is_sent_for_next_edits(remote, server):
    before = len(server.requests)
    assert remote.next_edits(None, CancelToken()) == NextEdits()
    assert len(server.requests) == before


@pytest.mark.parametrize("half", [0, 1])
def test_a_cancel_closes_the_connection_while_the_server_computes_and_while_it_generates(remote, server, half):
    cancel = CancelToken()

    def hold(reply):
        reply.send(reply.recorded[: half * len(reply.recorded) // 2])
        cancel.cancel()
        reply.until_gone()

    server.sends["/completion"] = hold
    with pytest.raises(CancelledError):
        list(remote.complete(request_at(CURSORS[0], filters=False), cancel))
    assert server.gone.wait(60)


def test_the_connection_closes_when_the_text_has_ended(remote, server):
    def endless(reply):
        reply.send(reply.recorded[: -len(reply.recorded) // 4])
        reply.until_gone()

    server.sends["/completion"] = endless
    event = last(remote, request_at(CURSORS[0], filters=False, grammar=GrammarMode.OFF, max_bytes=4))
    assert event.stop_reason is StopReason.MAX_BYTES
    assert server.gone.wait(60)
