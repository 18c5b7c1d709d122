"""A server that speaks vLLM's HTTP interface as its source describes it (0.32), with a tiny model and greedy decoding.

It is no recording. The real server's words were compared where a comment says so. `structured_outputs.regex` means what
the package `regex` makes of it.
"""

from __future__ import annotations

import json
import threading
import unicodedata
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import regex

VERSION = "0.32.0"
MAX_TOKENS = 4096


class VllmEmulation:
    """The server, on a port of its own.

    Attributes:
        requests: Path and body of each request.
        fails_after: Numbers of tokens after which the next streams end with an error; empty for never.
        gone: Set when a client has closed the connection of a stream before its end.
    """

    def __init__(self, loaded) -> None:
        self.requests = []
        self.fails_after = []
        self.gone = threading.Event()
        self._model, self._tokenizer = loaded.model, loaded.tokenizer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:
                self._answer(handler, None)

            def do_POST(handler) -> None:
                self._answer(handler, json.loads(handler.rfile.read(int(handler.headers["Content-Length"]))))

            def log_message(handler, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = False  # one that computes when the interpreter ends aborts it
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _answer(self, handler, body) -> None:
        self.requests.append((handler.path, body))
        if handler.path == "/v1/completions":
            self._complete(handler, body)
            return
        reply = {
            "/version": lambda: {"version": VERSION},
            "/v1/models": lambda: {"object": "list", "data": [{"id": "tiny", "max_model_len": MAX_TOKENS}]},
            "/detokenize": lambda: {"prompt": b"".join(map(self._tokenizer.token_bytes, body["tokens"])).decode()},
            "/tokenize": lambda: {"tokens": self._tokenize(body["prompt"]), "count": 0, "max_model_len": MAX_TOKENS},
        }[handler.path]
        _send(handler, 200, reply())

    def _tokenize(self, text) -> list[int]:
        """Return the tokens of a text, with its markers as special ones. The real server composes characters first."""
        text = unicodedata.normalize("NFC", text)
        special = self._tokenizer.special
        pieces = regex.split("(" + "|".join(map(regex.escape, special)) + ")", text)
        return [
            token
            for piece in pieces
            for token in ([special[piece]] if piece in special else self._tokenizer.encode(piece))
        ]

    def _complete(self, handler, body) -> None:
        assert body["stream"]
        assert body["return_token_ids"]
        handler.send_response(200)
        handler.end_headers()
        failure = self.fails_after.pop(0) if self.fails_after else None
        try:
            for number, (token, scores, finish) in enumerate(self._generate(body)):
                if number == failure:
                    _event(handler, {"error": {"message": "EngineCore encountered an issue.", "code": 500}})
                    return
                best = {
                    f"token_id:{one}": float(scores[one]) for one in (token, *np.argsort(-scores)[: body["logprobs"]])
                }
                logprobs = {
                    "tokens": [f"token_id:{token}"],
                    "token_logprobs": [float(scores[token])],
                    "top_logprobs": [best],
                }
                choice = {"index": 0, "text": "", "logprobs": logprobs, "finish_reason": finish, "token_ids": [token]}
                _event(handler, {"id": "cmpl-0", "object": "text_completion", "choices": [choice]})
            handler.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            self.gone.set()

    def _generate(self, body):
        """Yield each token with the log-probabilities of all, before constraints, and why the text ends with it."""
        pattern = regex.compile(body.get("structured_outputs", {}).get("regex", r"(.|\n)*"))
        written, tokens = b"", [*body["prompt"]]
        for number in range(1, body["max_tokens"] + 1):
            scores = self._scores(tokens)
            token = next(one for one in np.argsort(-scores).tolist() if self._allows(pattern, written, one, body))
            written += self._tokenizer.token_bytes(token)
            tokens.append(token)
            stops = token in body["stop_token_ids"]
            yield token, scores, "stop" if stops else "length" if number == body["max_tokens"] else None
            if stops:
                return

    def _allows(self, pattern, written, token, body) -> bool:
        text = written.decode("utf-8", "replace")
        if token in body["stop_token_ids"]:
            return pattern.fullmatch(text) is not None
        data = self._tokenizer.token_bytes(token)
        return bool(data) and pattern.fullmatch((written + data).decode("utf-8", "replace"), partial=True) is not None

    def _scores(self, tokens):
        """Return the log-probabilities of the next token."""
        rows = np.asarray(tokens, dtype=np.int32)
        slots = np.arange(len(rows), dtype=np.int32)
        logits = self._model.prefill(rows, slots, self._model.new_cache(MAX_TOKENS), [len(rows) - 1])
        return logits.row(0) - logits.log_sum(0)


def _send(handler, status, message) -> None:
    data = json.dumps(message).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _event(handler, message) -> None:
    handler.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")
    handler.wfile.flush()
