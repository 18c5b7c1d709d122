"""Each failure of a model server is one sentence that says what to do, and the next request works again."""

from __future__ import annotations

import json
import math
import socket
import ssl
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from completion.cancellation import CancelToken
from completion.errors import CancelledError, ConfigurationError, RemoteInterruptedError, RemoteServerError
from completion.model.tokenizer import CodeTokenizer
from completion.progress import silent
from completion.remote import connection
from completion.remote.address import RemoteAddress
from completion.remote.connection import Connection
from completion.remote.engine import RemoteEngine, RemoteModel
from completion.remote.llama_server import LlamaServer
from completion.remote.model_server import Query
from completion.remote.vllm import Vllm
from completion.request import GrammarMode, Sampling
from tests.completion.remote.replay_server import ReplayServer
from tests.completion.remote.test_remote_engine import CURSORS, last, request_at

CERTIFICATE = Path(__file__).with_name("localhost.pem")
REQUEST = request_at(CURSORS[0], filters=False, grammar=GrammarMode.OFF)


@pytest.fixture
def tls_server(upstream):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    replay = ReplayServer(upstream, context)
    yield replay
    replay.close()


def connect(address, tiny_gguf):
    return RemoteModel.connect(address, f"{tiny_gguf}.folder", silent, CancelToken())


def failure(engine, request=REQUEST):
    with pytest.raises(RemoteServerError) as raised:
        last(engine, request)
    return str(raised.value)


def test_a_server_that_is_not_there(server, tiny_gguf):
    server.close()
    with pytest.raises(RemoteServerError, match=r"No server answers at http://127.0.0.1:\d+ \(Connection refused\)"):
        connect(RemoteAddress(server.url), tiny_gguf)


def test_an_ipv6_address_without_a_port_gets_the_usual_one(monkeypatch):
    asked = []

    def look_up(host, port, **_):
        asked.append((host, port))
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    for url in ("http://[::1]", "https://[2001:db8::a]", "https://[2001:db8::5]/models", "https://[2001:db8::5]:8080"):
        with pytest.raises(RemoteServerError, match=r"No server answers at http"):
            Connection(RemoteAddress(url)).json("/props", None, CancelToken())
    assert asked == [("::1", 80), ("2001:db8::a", 443), ("2001:db8::5", 443), ("2001:db8::5", 8080)]


def test_a_wrong_token_and_the_right_one(server, tiny_gguf, tmp_path):
    server.token, file = "open", tmp_path / "token"
    with pytest.raises(RemoteServerError, match=r"refuses the token \(HTTP 401\). Correct the engine's token_file"):
        connect(RemoteAddress(server.url), tiny_gguf)
    file.write_text("open\n")
    assert connect(RemoteAddress(server.url, token_file=str(file)), tiny_gguf).facts.context_tokens == 4096


def test_a_token_that_is_replaced_while_the_engine_runs(server, tiny_gguf, tmp_path):
    server.token, file = "open", tmp_path / "token"
    file.write_text("open")
    engine = RemoteEngine(connect(RemoteAddress(server.url, token_file=str(file)), tiny_gguf))
    server.token = "sesame"
    assert "refuses the token (HTTP 401). Correct the engine's token_file" in failure(engine)
    file.write_text("sesame")
    assert last(engine, REQUEST).suggestions
    file.unlink()
    assert "token_file" in failure(engine)


def test_an_unknown_certificate_and_the_known_one(tls_server, tiny_gguf):
    with pytest.raises(
        RemoteServerError, match=r"The certificate of https://.* is not trusted .self-signed certificate"
    ):
        connect(RemoteAddress(tls_server.url), tiny_gguf)
    model = connect(RemoteAddress(tls_server.url, ca_file=str(CERTIFICATE)), tiny_gguf)
    assert last(RemoteEngine(model), REQUEST).suggestions[0].text


def test_http_to_a_server_that_wants_https(tls_server, tiny_gguf):
    with pytest.raises(RemoteInterruptedError, match=r"Try again. If it wants https, correct the engine's url."):
        connect(RemoteAddress(tls_server.url.replace("https", "http")), tiny_gguf)


def test_a_cancel_closes_an_encrypted_connection(tls_server, tiny_gguf):
    engine = RemoteEngine(connect(RemoteAddress(tls_server.url, ca_file=str(CERTIFICATE)), tiny_gguf))
    cancel, waits = CancelToken(), threading.Event()

    def hold(reply):
        waits.set()
        reply.until_gone()

    tls_server.sends["/completion"] = hold
    canceller = threading.Thread(target=lambda: waits.wait(60) and cancel.cancel())
    canceller.start()
    with pytest.raises(Exception, match=r"cancelled"):
        list(engine.complete(REQUEST, cancel))
    canceller.join()
    assert tls_server.gone.wait(60)


class CancelledWhenWatched(CancelToken):
    """A token that is cancelled as soon as something waits that a cancel can end."""

    @contextmanager
    def calling(self, callback, hurried=lambda: None):
        with super().calling(callback, hurried):
            self.cancel()
            yield


@pytest.fixture
def patience(monkeypatch):
    """Let connecting take longer than the test may."""
    monkeypatch.setattr(connection, "CONNECT_S", 1000.0)


@pytest.mark.usefixtures("patience")
@pytest.mark.skipif(sys.platform != "linux", reason="a full queue of connections leaves others unanswered on Linux")
def test_a_cancel_is_heard_while_a_server_does_not_answer():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as stack:
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        server = Connection(RemoteAddress(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        with pytest.raises(CancelledError):
            server.json("/v1/models", None, CancelledWhenWatched())


@pytest.mark.usefixtures("patience")
def test_a_cancel_is_heard_while_a_server_does_not_shake_hands():
    cancel = CancelToken()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hear_and_cancel():
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(1)
                cancel.cancel()
                while accepted.recv(1 << 16):
                    pass

        thread = threading.Thread(target=hear_and_cancel)
        thread.start()
        server = Connection(RemoteAddress(f"https://127.0.0.1:{listener.getsockname()[1]}"))
        with pytest.raises(CancelledError):
            server.json("/v1/models", None, cancel)
        thread.join(60)
        assert not thread.is_alive()


def test_the_tokens_of_a_usual_vocabulary_fit_what_a_proxy_takes_by_default(server):
    lengths = []

    def note_length(reply):
        lengths.append(int(reply.headers["Content-Length"]))
        reply.send(b"HTTP/1.0 200 OK\r\n\r\n{}")

    server.sends["/detokenize"] = note_length
    all_of_qwen = {"tokens": list(range(151_665))}
    assert Connection(RemoteAddress(server.url)).json("/detokenize", all_of_qwen, CancelToken()) == {}
    assert lengths[0] <= 1 << 20


def swap_two_letters(tokenizer):
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["A"], vocabulary["B"] = vocabulary["B"], vocabulary["A"]


def split_at_spaces_only(tokenizer):
    tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": " "}


def swap_two_markers(tokenizer):
    one, other = (next(token for token in tokenizer["added_tokens"] if name in token["content"]) for name in MARKERS)
    one["content"], other["content"] = other["content"], one["content"]


MARKERS = ("fim_prefix", "fim_suffix")


@pytest.mark.parametrize("change", [swap_two_letters, split_at_spaces_only, swap_two_markers])
def test_a_model_with_other_tokens(server, tmp_path, tiny_gguf, change):
    source = Path(f"{tiny_gguf}.folder")
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    change(tokenizer)
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (tmp_path / "config.json").write_bytes((source / "config.json").read_bytes())
    with pytest.raises(
        RemoteServerError, match=r"has other tokens than the tokenizer of `model`. Set `model` to a folder"
    ):
        RemoteModel.connect(RemoteAddress(server.url), str(tmp_path), silent, CancelToken())


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_half_a_reply_and_none_to_the_request_that_goes_on_after_it(remote, server, share):
    parts = iter([share, 0.0])
    server.sends["/completion"] = lambda reply: reply.send(reply.recorded[: int(next(parts) * len(reply.recorded))])
    assert "ended in the middle of its reply. Try again." in failure(remote)
    assert next(parts, None) is None
    server.sends.clear()
    assert last(remote, REQUEST).suggestions


def test_half_a_reply_of_a_known_length_and_half_an_event_of_an_unknown_one(remote, server, tiny_gguf):
    server.sends["/props"] = lambda reply: reply.send(b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"model_alias')
    with pytest.raises(RemoteInterruptedError, match=r"ended in the middle of its reply"):
        connect(RemoteAddress(server.url), tiny_gguf)
    parts = iter([b'data: {"content": "x', b""])
    server.sends["/completion"] = lambda reply: reply.send(b"HTTP/1.0 200 OK\r\n\r\n" + next(parts))
    assert "ended in the middle of its reply" in failure(remote)


def test_a_server_that_is_killed_while_it_generates(remote, server):
    shares = iter([0.5, 0.0])

    def kill(reply):
        reply.send(reply.recorded[: int(next(shares) * len(reply.recorded))])
        reply.reset()

    server.sends["/completion"] = kill
    assert "ended in the middle of its reply. Try again." in failure(remote)


def test_silence(remote, server, monkeypatch):
    monkeypatch.setattr(connection, "SILENCE_S", 0.2)

    def fall_silent(reply):
        reply.send(reply.recorded[: len(reply.recorded) // 2])
        reply.until_gone()

    server.sends["/completion"] = fall_silent
    assert "was silent for 0.2 s. It may be overloaded." in failure(remote)
    assert server.gone.wait(60)


def test_an_error_inside_a_reply_that_began_well(server, tiny_gguf):
    tokenizer = CodeTokenizer.from_folder(Path(f"{tiny_gguf}.folder"))
    llama_server = LlamaServer(Connection(RemoteAddress(server.url)), tokenizer)
    nonsense = Query([1, 2, 3], 16, sampling=Sampling(temperature=100.0, seed=1))  # bytes that are no UTF-8
    generated = llama_server.generate(nonsense, CancelToken())
    assert next(generated).log_probabilities
    with pytest.raises(RemoteServerError, match=r"failed: The model produced output that does not match"):
        list(generated)


def reply_with_event(event):
    return lambda reply: reply.send(b"HTTP/1.0 200 OK\r\n\r\ndata: " + json.dumps(event).encode() + b"\n\n")


def llama_event(token, top):
    found = {"id": token, "logprob": -0.5, "top_logprobs": [{"id": each, "logprob": -2.0} for each in top]}
    return {"content": "x", "tokens": [token], "completion_probabilities": [found], "timings": {"cache_n": 0}}


def vllm_event(token, top):
    scores = {f"token_id:{token}": -0.5} | {f"token_id:{each}": -2.0 for each in top}
    choice = {"token_ids": [token], "logprobs": {"top_logprobs": [scores]}, "finish_reason": None}
    return {"choices": [choice]}


WRONG_NUMBERS = ("1e999", "-1e999", "NaN", "Infinity", "-7", "1" + "0" * 400, "1" + "0" * 5000, "[]", "{}", '"\\ud800"')


@pytest.mark.parametrize("number", WRONG_NUMBERS)
@pytest.mark.parametrize(
    ("kind", "path", "event"),
    [(LlamaServer, "/completion", llama_event), (Vllm, "/v1/completions", vllm_event)],
)
def test_a_number_that_no_server_means_is_one_sentence(server, tiny_gguf, kind, path, event, number):
    tokenizer = CodeTokenizer.from_folder(Path(f"{tiny_gguf}.folder"))
    model, [x] = kind(Connection(RemoteAddress(server.url)), tokenizer), tokenizer.encode("x")
    whole = json.dumps(event(x, [3]))
    wrong = [whole.replace(old, new.replace("@", number)) for old, new in ((f"[{x}]", "[@]"), ("-0.5", "@"))]
    wrong.append(whole.replace('"x"', f'"{chr(92)}ud800"'))
    for text in wrong:
        server.sends[path] = lambda reply, text=text: reply.send(
            b"HTTP/1.0 200 OK\r\n\r\ndata: " + text.encode() + b"\n\n"
        )
        try:
            generated = next(model.generate(Query([1], 4), CancelToken()))
        except RemoteServerError as error:
            error.args[0].encode()
        else:
            assert 0 <= generated.token < tokenizer.vocabulary_size
            assert all(map(math.isfinite, generated.log_probabilities.values()))


@pytest.mark.parametrize("endless", [b": comment\n", b"x", b"\n", b"retry: 1\n"])
def test_a_reply_that_sends_all_the_time_but_no_event_ends(server, tiny_gguf, monkeypatch, endless):
    monkeypatch.setattr(connection, "SILENCE_S", 0.2)
    monkeypatch.setattr(connection, "REPLY_S", 0.2)

    def send_for_ever(reply):
        reply.send(b"HTTP/1.0 200 OK\r\n\r\n")
        with suppress(OSError):
            while True:
                reply.send(endless)

    server.sends["/completion"] = server.sends["/props"] = send_for_ever
    model = LlamaServer(Connection(RemoteAddress(server.url)), CodeTokenizer.from_folder(Path(f"{tiny_gguf}.folder")))
    for ask in (model.facts, lambda cancel: next(model.generate(Query([1], 4), cancel))):
        with pytest.raises(RemoteServerError):
            ask(CancelToken())


@pytest.mark.parametrize(
    ("kind", "path", "event"),
    [(LlamaServer, "/completion", llama_event), (Vllm, "/v1/completions", vllm_event)],
)
def test_tokens_that_only_a_larger_model_of_the_family_has(server, tiny_gguf, kind, path, event):
    """Qwen2.5-Coder-7B has 152,064 rows, the default model 151,936; both have the same 151,665 tokens."""
    tokenizer = CodeTokenizer.from_folder(Path(f"{tiny_gguf}.folder"))
    model, [x] = kind(Connection(RemoteAddress(server.url)), tokenizer), tokenizer.encode("x")
    further = tokenizer.vocabulary_size + 7
    server.sends[path] = reply_with_event(event(x, [3, further]))
    assert next(model.generate(Query([1], 4), CancelToken())).log_probabilities == {x: -0.5, 3: -2.0}
    server.sends[path] = reply_with_event(event(further, [3]))
    with pytest.raises(RemoteServerError, match="lacks tokens"):
        next(model.generate(Query([1], 4), CancelToken()))


def test_a_request_that_the_server_refuses(server, tiny_gguf):
    tokenizer = CodeTokenizer.from_folder(Path(f"{tiny_gguf}.folder"))
    llama_server = LlamaServer(Connection(RemoteAddress(server.url)), tokenizer)
    unknown = Query([1, tokenizer.vocabulary_size + 1], 4)
    with pytest.raises(RemoteServerError, match=r"refuses the request with HTTP 400: Prompt contains invalid tokens"):
        list(llama_server.generate(unknown, CancelToken()))


def test_another_kind_of_server(server, tiny_gguf):
    server.sends["/props"] = lambda reply: reply.send(b"HTTP/1.0 200 OK\r\n\r\n<html>It works!</html>")
    with pytest.raises(RemoteServerError, match=r"cannot be read. Is it the kind of server in the settings?"):
        connect(RemoteAddress(server.url), tiny_gguf)
    server.sends["/props"] = lambda reply: reply.send(b'HTTP/1.0 200 OK\r\n\r\n{"model": "x"}')
    with pytest.raises(RemoteServerError, match=r"is no llama-server"):
        connect(RemoteAddress(server.url), tiny_gguf)


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (b"302 Found\r\nLocation: http://x/\r\n\r\n", r"redirects to another address \(HTTP 302\).* Correct .* url."),
        (b'404 Not Found\r\n\r\n{"detail":"Not Found"}', r"has no /props \(HTTP 404\). Correct the engine's kind, or"),
        (b"413 Content Too Large\r\n\r\n<html>", r"refuses the request with HTTP 413: no explanation"),
        (b"400 Bad Request\r\n\r\n" + b"[" * 100_000, r"refuses the request with HTTP 400: no explanation"),
        (b"400 Bad\r\n\r\n" + f'["\u2200",{"[" * 3000}'.encode("utf-16-le"), r"with HTTP 400: no explanation"),
    ],
    ids=["moved", "missing", "large", "nested", "nested, with a quote's byte in a string of UTF-16"],
)
def test_a_refusal_says_what_to_correct_as_far_as_it_is_known(server, tiny_gguf, reply, sentence):
    server.sends["/props"] = lambda each: each.send(b"HTTP/1.0 " + reply)
    with pytest.raises(RemoteServerError, match=sentence):
        connect(RemoteAddress(server.url), tiny_gguf)


@pytest.mark.parametrize(
    "url",
    [
        "gpu:8080",
        "user:pass@gpu:8080",
        "user:pass://word@gpu",
        "ftp://gpu",
        "https://",
        "http://[::1",
        "https://user:pass@gpu",
        "https://user:pass/word@gpu",
        "https://user:pass@[::1",
        "https://gpu?a=1",
        "https://:pass@gpu",
        "https://gpu/@model.example",
        "https://gpu/modèle",
        "https://gpu/a model",
        "https://gpu..example:8080",
        f"https://{'a' * 64}.example",
    ],
)
def test_a_malformed_address(url):
    with pytest.raises(ConfigurationError) as raised:
        RemoteAddress(url).parts()
    assert "pass" not in str(raised.value)


def test_text_travels_unencrypted_only_to_this_computer_or_where_the_user_says_so():
    for url in ("http://127.0.0.1:80", "http://[::1]:80", "http://localhost", "https://gpu.example"):
        assert RemoteAddress(url).parts()
    with pytest.raises(ConfigurationError, match=r"would send your text unencrypted to another machine. Use https"):
        RemoteAddress("http://gpu.example").parts()
    assert RemoteAddress("http://gpu.example", plain_http=True).parts()


def test_a_token_that_cannot_be_read(tmp_path, monkeypatch):
    (tmp_path / "empty").write_text("\n")
    for given, message in (
        ({"token_file": str(tmp_path / "none")}, r"none cannot be read \(No such file or directory\)\. Give"),
        ({"token_file": str(tmp_path / "empty")}, "has no token"),
        ({"token_env": "NO_SUCH_TOKEN"}, "NO_SUCH_TOKEN has no token"),
        ({"token_env": "A", "token_file": "b"}, "both token_file and token_env"),
        ({"ca_file": str(tmp_path / "none")}, r"none cannot be read \(No such file or directory\)\. Give"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            Connection(RemoteAddress("https://gpu.example", **given))
    monkeypatch.setenv("GPU_TOKEN", "sesame")
    assert RemoteAddress("https://gpu.example", token_env="GPU_TOKEN").token() == "sesame"


@pytest.mark.parametrize("head", ["HTTP/1.0 400 no", "HTTP/1.0 500 no", "HTTP/1.0 503 no", "HTTP/1.0 200 OK"])
def test_what_a_server_says_of_a_request_is_in_the_message_but_in_no_log(remote, server, head):
    """It may quote the prompt."""
    said = json.dumps({"error": {"message": f"cannot read: {REQUEST.prefix[-20:]}"}})
    data = f"data: {said}\n\n" if head.endswith("OK") else said
    server.sends["/completion"] = lambda reply: reply.send(f"{head}\r\n\r\n{data}".encode())
    with pytest.raises(RemoteServerError) as raised:
        last(remote, REQUEST)
    assert "cannot read" in str(raised.value)
    assert raised.value.logged.startswith(f"The server at {server.url} ")
    assert "cannot read" not in raised.value.logged
