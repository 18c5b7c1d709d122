"""Existing clients' requests give what `/v1/complete` gives at the same cursor, whole or streamed."""

import json
import re

import pytest

from completion.engine import Engine
from completion.host.dialects.marked_prompt import marked_request
from completion.host.engine_protocol import LoadedEngine
from completion.model.loading import load_model
from tests.completion.host.dialects.client_requests import MARKED, REPLAYS

DOCUMENT = '''"""A shop's cart ("panier d'été")."""

imp¦ort json
from dataclasses import ¦dataclass, field


@dataclass
class Item:
    name: str
    price: float
    qua¦ntity: int = 1

    def total(self):
        return self.¦price * self.quantity

    def discounted(self, percent):
        ¦


class Cart:
    def __init__(self):
        self.items = [¦]

    def add(self, item):
        self.items.app¦end(item)

    def remove(self, name):
        self.items = [item for item in ¦self.items if item.name != name]

    def total(self):
        return sum(item.total(¦) for item in self.items)

    def count(self):
        ¦return len(self.items)

    def is_empty(self):
        return ¦

    def find(self, name):
        for item in self.items:
            if ¦item.name == name:
                return item
        ¦return None

    def save(self, path):
        with open(path, "w", ¦encoding="utf-8") as file:
            json.dump([vars(item) for item in self.items], ¦file)

    @classmethod
    def load(cls, path):
        cart = ¦cls()
        with open(path, encoding="utf-8") as file:
            for row in json.load(file):
                cart.add(Item(**¦row))
        return ¦cart


def ma¦in():
    cart = Cart()
    cart.add(Item("apple", ¦0.5, 4))
    cart.add(Item(¦))
    print(cart.¦total())
    print(f"{cart.co¦unt()} items")


if __name__ == "__main__":
    ¦main()'''
TEXT = DOCUMENT.replace("¦", "")


def cursors():
    """Return the texts before and after each cursor.

    At each mark somebody types: the rest of the line is not written yet, apart from the brackets that an editor closes.
    At every fourth mark the cursor also stands in the finished line, where most suggestions are dropped.
    """
    parts = DOCUMENT.split("¦")
    places = []
    for count in range(1, len(parts)):
        prefix, suffix = "".join(parts[:count]), "".join(parts[count:])
        rest, line_break, below = suffix.partition("\n")
        closers = re.search(r"[)\]}:]*$", rest).group() if parts[count - 1].endswith("(") else ""
        places.append((prefix, closers + line_break + below))
        if rest and count % 4 == 0:
            places.append((prefix, suffix))
    return places


def suggestions_in(reply):
    """Return the suggestions of the last event of a reply to `/v1/complete`."""
    assert reply.status_code == 200, reply.text
    event = json.loads(reply.text.strip().split("\n")[-1].removeprefix("data: "))
    assert event.get("done"), event
    return event["suggestions"]


async def suggestions(client, request):
    return suggestions_in(await client.post("/v1/complete", json=request))


async def forget(client):
    """Empty the cache once no request runs any more, and return when it is empty.

    A client that closes its stream has its reply before the model's thread has finished the request's last step.
    """
    await client.post("/v1/close", json={"documents": [""]})
    while (await client.get("/health")).json()["busy"]:
        pass


def inserted(suggestion, suffix, stops):
    """Return the part of a suggestion that a client inserts which replaces nothing after the cursor."""
    text = suggestion["text"]
    if replaced := suffix[: suggestion["replace_after"]]:
        text = text[: text.rindex(replaced if replaced in text else replaced.strip())]
    return text[: min((text.index(stop) for stop in stops if stop in text), default=len(text))]


def prompt_of(replay, prefix, suffix):
    """Return what the model's prompt depends on."""
    own = replay.own_request(prefix, suffix)
    return own["prefix"], own["suffix"], str(own.get("context")), own.get("layout", "")


async def differences(client, replays, prefix, suffix):
    """Return a line for each client whose text is not that of `/v1/complete`.

    Both compute with the same keys and values: those of an empty cache, or of the same prompt after it.
    """
    found, before = [], None
    for replay in sorted(replays, key=lambda replay: prompt_of(replay, prefix, suffix)):
        if replay.at_line_end and suffix[:1] not in ("", "\n"):
            continue
        own = replay.own_request(prefix, suffix)
        if prompt_of(replay, prefix, suffix) != before:
            await forget(client)
        before = prompt_of(replay, prefix, suffix)
        expected = [inserted(each, own["suffix"], replay.stops) for each in await suggestions(client, own)] or [""]
        body = replay.request(prefix, suffix)
        reply = await client.post(replay.path, content=body, headers={"Content-Type": "application/json"})
        assert reply.status_code == 200, (replay.client, reply.text)
        read = replay.read(reply.content)
        texts = read if isinstance(read, list) else [read]
        same = texts == expected[: len(texts)] if isinstance(read, list) else texts == expected[:1]
        ended = replay.timed and "\n" in expected[0] and expected[0].startswith(texts[0]) and "\n" in texts[0]
        if not (same or ended):
            found.append(f"{replay.client}: {texts!r} instead of {expected!r}")
    await forget(client)
    return found


def test_there_are_enough_cursors_in_lines_and_in_words():
    places = cursors()
    assert len(places) >= 24
    assert sum(suffix[:1] not in ("", "\n") for _, suffix in places) >= 5
    assert sum(prefix[-1:].isalpha() for prefix, _ in places) >= 5


def test_every_request_is_json_with_the_document_in_it():
    prefix, suffix = 'x = "é\tb', '\\"\n'
    for replay in REPLAYS:
        body = replay.request(prefix, suffix)
        assert "é\\tb" in body.decode(), replay.client
        assert "@" not in body.decode(), replay.client
        assert isinstance(json.loads(body), dict)


def test_a_replays_markers_give_the_text_that_the_client_wrote():
    parts = marked_request(MARKED.replace("@P@", "before").replace("@S@", "after"))
    assert (parts.prefix, parts.suffix) == ("before", "after")


@pytest.fixture(scope="module")
def tiny_engine(tiny_model):
    return LoadedEngine(Engine(tiny_model), "tiny", "cpu", 4096)


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.client)
async def test_a_client_gets_what_v1_complete_gives(start_host, tiny_engine, replay):
    client = await start_host(StandIn(tiny_engine))
    for prefix, suffix in cursors()[5:8]:
        assert await differences(client, [replay], prefix, suffix) == []


@pytest.fixture(scope="module")
def default_engine():
    loaded = load_model("default")
    return LoadedEngine(Engine(loaded), loaded.name, loaded.device, loaded.model.shape.max_positions)


@pytest.mark.clients
@pytest.mark.real_model
@pytest.mark.timeout(900)
@pytest.mark.parametrize("cursor", range(len(cursors())))
async def test_the_default_model_completes_the_same_for_every_client(start_host, default_engine, cursor):
    client = await start_host(StandIn(default_engine))
    client.timeout = None  # the test's own limit holds, also on a busy machine
    prefix, suffix = cursors()[cursor]
    is_typed = prefix + suffix != TEXT
    assert bool(await suggestions(client, {"prefix": prefix, "suffix": suffix})) or not is_typed
    assert await differences(client, REPLAYS, prefix, suffix) == []


class StandIn:
    """The form in which `start_host` takes an engine, for one that is loaded already and outlives the host."""

    gated = False

    class permits:
        @staticmethod
        def release(count):
            pass

    def __init__(self, loaded):
        self._loaded = loaded

    def load(self, _progress):
        return self._loaded
