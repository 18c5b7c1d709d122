"""A page in the real Chromium gets no completion out of a host that runs with `--allow-local`."""

import asyncio
import http.server
import json
import threading

import httpx
import pytest

from completion.host.process.sockets import TcpAddress, own_socket, tcp_socket
from completion.host.server import HostServer, HostSettings
from tests.completion.host.paced_engine import PacedEngine

pytestmark = pytest.mark.vscode

BODY = json.dumps({"prompt": "one", "stream": False, "options": {"num_predict": 1}})
PATHS = ("/api/generate", "/v1/completions", "/completion", "/infill", "/v1/fim/completions")
ATTACK = """
async ([origin, body, paths]) => {
  const read = [];
  const ways = [
    {headers: {"Content-Type": "application/json"}},
    {headers: {"Content-Type": "text/plain"}},
    {mode: "no-cors"},
    {mode: "no-cors", headers: {"Content-Type": "application/json"}},
  ];
  for (const path of paths) {
    for (const way of ways) {
      try {
        const reply = await fetch(origin + path, {method: "POST", body, ...way});
        read.push(await reply.text());
      } catch (error) { read.push(""); }
    }
    read.push(await new Promise(resolve => {
      const socket = new WebSocket(origin.replace("http", "ws") + path);
      socket.onmessage = event => resolve(event.data);
      socket.onopen = () => { socket.send(body); resolve("open"); };
      socket.onerror = () => resolve("");
    }));
    navigator.sendBeacon(origin + path, body);
    for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      const frame = Object.assign(document.createElement("iframe"), {name: "frame"});
      document.body.append(frame);
      const form = Object.assign(document.createElement("form"), {method: "POST", action: origin + path, enctype});
      form.target = "frame";
      form.innerHTML = `<input name='{"prompt":"one","x":"' value='"}'>`;
      document.body.append(form);
      await new Promise(resolve => { frame.onload = resolve; form.submit(); });
      frame.remove();
    }
  }
  return read;
}
"""


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><body>")

    def log_message(self, *_):
        pass


@pytest.fixture
def web_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def open_host(tmp_path):
    """A host that runs with `--allow-local`, in a thread: its address and its engine."""
    with tcp_socket(TcpAddress("127.0.0.1", 0, "")) as probe:
        port = probe.getsockname()[1]
    address = TcpAddress("127.0.0.1", port, "a-token-of-enough-length", allow_local=True)
    engine, started = PacedEngine(), threading.Event()
    running = {}

    async def serve():
        own = own_socket(tmp_path / "h.sock")
        running["server"] = HostServer(HostSettings(idle_s=0, tcp=address), engine.load, own.token)
        running["loop"] = asyncio.get_running_loop()
        started.set()
        await running["server"].run([own.listener, tcp_socket(address)])

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(30)
    while httpx.get(f"http://127.0.0.1:{port}/health").json()["state"] != "ready":
        pass
    yield port, engine
    running["loop"].call_soon_threadsafe(running["server"].stop)
    thread.join(30)


def attack(page, origin):
    """Try each way that a page has, which the host refuses, and return what the page can read."""
    replies = []
    page.on("response", lambda reply: replies.append((reply.request.resource_type, reply.status)))
    read = page.evaluate(ATTACK, [origin, BODY, list(PATHS)])
    assert replies.count(("document", 403)) == 3 * len(PATHS)  # forms
    assert set(replies) == {("fetch", 403), ("ping", 403), ("document", 403)}
    return read


def test_a_page_gets_no_completion_and_a_program_does(browser, web_server, open_host):
    port, engine = open_host
    page = browser.new_page()
    page.goto(web_server)
    for host in ("127.0.0.1", "localhost"):
        read = attack(page, f"http://{host}:{port}")
        assert len(read) == 5 * len(PATHS)
        assert set(read) == {""}
    assert engine.started == []
    page.close()
    headers = {"Content-Type": "application/json"}
    reply = httpx.post(f"http://127.0.0.1:{port}/api/generate", content=BODY, headers=headers)
    assert reply.json()["response"] == " 0"
    assert len(engine.started) == 1


def test_a_page_whose_name_resolves_to_this_computer_gets_no_completion(browser, paths, open_host):
    """DNS rebinding: to the browser the page and the host have the same origin, so nothing else stops the page."""
    port, engine = open_host
    rules = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    rebound = browser.browser_type.launch(executable_path=paths["chromium"], args=["--no-sandbox", rules])
    page = rebound.new_page()
    reply = page.goto(f"http://evil.example:{port}/v1/models")
    assert reply.status == 403
    read = attack(page, f"http://evil.example:{port}")
    assert len(read) == 5 * len(PATHS)
    assert all("A web page sent this request" in text for at, text in enumerate(read, 1) if at % 5)
    assert set(read[4::5]) == {""}  # WebSockets
    assert engine.started == []
    rebound.close()
