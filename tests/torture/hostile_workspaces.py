"""Folders that a clone may contain: links, FIFOs, broken ignore files, long lines, deep nesting, and canaries."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from tests.tiny_models import write_tiny_model
from tests.torture.canaries import SECRET, own_canary, strangers
from tests.torture.echo_engine import echo
from tests.torture.raw_client import LanguageClient
from tests.torture.tally import Round
from tests.torture.world import ANSWER_S, World

_TINY_SHARE = 0.4
_ACTS = 40
_RULES = (
    "\\",
    "!",
    "a\\",
    "[z-a]",
    "*a*a*a*a*a*a*a*b",
    "[[:alpha:]",
    "**/**/**/x",
    "/",
    "!/",
    "\0",
    "é\udcff",
    "#",
    " " * 900,
)
_SECRET_NAMES = (
    ".env",
    ".env.local",
    "id_rsa",
    "server.pem",
    "secrets.yml",
    ".npmrc",
    "credentials.json",
    "my-secrets.yml",
    "client_secret_1.json",
    "secrets/token.txt",
    "terraform.tfvars.json",
    ".yarnrc.yml",
    "private_key.txt",
)
_DEVICES = ("/dev/zero", "/dev/stdin", "/proc/kcore", "/proc/self/environ", "/etc/passwd")

Hostility = Callable[[Path, random.Random], None]


def _links(folder: Path, chance: random.Random) -> None:
    (folder / "self.py").symlink_to("self.py")
    (folder / "up").symlink_to("..")
    (folder / "loop").symlink_to(folder)
    (folder / "outside.py").symlink_to(chance.choice(_DEVICES))
    (folder / "linked").symlink_to("/etc")


def _rule_files(folder: Path, chance: random.Random) -> None:
    lines = [chance.choice(_RULES) for _ in range(chance.randrange(1, 6))] + ["ignored/"]
    for name in chance.sample((".gitignore", ".draftlineignore", "sub/.gitignore"), 2):
        (folder / name).write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))


def _many_rules(folder: Path, chance: random.Random) -> None:
    """As many one-letter rules as a file may have, in folders inside each other."""
    deep = folder
    for _ in range(chance.choice((3, 60))):
        deep /= "d"
        deep.mkdir(exist_ok=True)  # `_odd_names` makes such folders, too
        (deep / ".gitignore").write_text("a\n" * chance.choice((20_000, 64_000)))
        (deep / "file.py").write_text("x = 1\n")


def _special_files(folder: Path, chance: random.Random) -> None:
    for name in chance.sample((".gitignore", ".draftline.toml", "pipe.py", "sub/.gitignore"), 2):
        (folder / name).unlink(missing_ok=True)
        if chance.random() < 0.5:
            os.mkfifo(folder / name)
        else:
            (folder / name).symlink_to(chance.choice(_DEVICES))


def _settings_files(folder: Path, chance: random.Random) -> None:
    texts = (
        "a = " + "[" * 20_000,
        "max_tokens = " + "9" * 5000,
        "model = '/bin/sh'\nbackend = 'cuda'",
        "\0",
        "a" * 500_000,
        "[" + "a." * 5000 + "b]",
        "a." * 31_990 + "a = 1",
        '"=" . ' * 10_000 + "a = 1",
        "quiet_ms = nan",
    )
    (folder / ".draftline.toml").write_text(chance.choice(texts))


def _long_lines(folder: Path, chance: random.Random) -> None:
    size = chance.choice((20_000, 60_000, 250_000))
    (folder / "bundle.js").write_text("var a=" + "a(b)[c]," * (size // 8))
    (folder / "data.json").write_text(json.dumps([{"k": index} for index in range(size // 10)]))
    (folder / "picture.svg").write_text("<svg d='" + "M1 2" * (size // 4))


def _deep_texts(folder: Path, chance: random.Random) -> None:
    size = chance.choice((8_000, 48_000))
    (folder / "Generic.java").write_text("A<" * (size // 2))
    (folder / "Arrows.java").write_text("A=>" * 1100)
    (folder / "template.js").write_text("x = `\n" + "/*\n" * (size // 3))
    (folder / "braces.c").write_text("{" * size)
    (folder / "nested.py").write_text("\n".join(" " * depth + "if x:" for depth in range(min(size, 2000) // 10)))


def _odd_names(folder: Path, chance: random.Random) -> None:
    for name in (b"\xff\xfe.py", b"new\nline.py", b"-rf.py", b" .py", b"%2e%2e.py", "é".encode() * 40):
        (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).write_text("x = 1\n")
    deep = folder
    for _ in range(chance.choice((10, 60))):
        deep = deep / "d"
    deep.mkdir(parents=True, exist_ok=True)
    (deep / "deep.py").write_text("x = 1\n")


def _many_files(folder: Path, chance: random.Random) -> None:
    for index in range(chance.choice((100, 1500))):
        (folder / f"m{index}.py").write_text(f"def f{index}():\n    return {index}\n")


def _junk(folder: Path, chance: random.Random) -> None:
    for index in range(5):
        (folder / f"junk{index}.py").write_bytes(chance.randbytes(3000))
    (folder / "zeros.py").write_bytes(b"\0" * 100_000)


_HOSTILITIES: tuple[Hostility, ...] = (
    _links,
    _rule_files,
    _settings_files,
    _long_lines,
    _deep_texts,
    _odd_names,
    _many_files,
    _junk,
    _many_rules,
    _special_files,  # last: what is written after it would go into a pipe, or through a link out of the folder
)


def make_workspace(folder: Path, chance: random.Random) -> Path:
    """A folder with a few hostilities, some good files, secrets, and names of its own."""
    (folder / "sub").mkdir(parents=True)
    (folder / "ignored").mkdir()
    (folder / ".git").mkdir()
    name = own_canary(folder.as_uri())
    (folder / "names.py").write_text(f"def {name}(first, second):\n    return {name}\n")
    (folder / "good.py").write_text(f"from names import {name}\n\nvalue = 1\n")
    for secret in _SECRET_NAMES:
        (folder / secret).parent.mkdir(exist_ok=True)
        (folder / secret).write_text(f"TOKEN={SECRET}\n")
    for hostility in sorted(chance.sample(_HOSTILITIES, chance.randint(1, 4)), key=_HOSTILITIES.index):
        hostility(folder, chance)
    return folder


class Visitor:
    """An editor in hostile workspaces: it opens what lies there, types, asks, and hears of changed files."""

    def __init__(
        self, client: LanguageClient, world: World, folders: list[Path], chance: random.Random, *, is_echo: bool
    ):
        self.client = client
        self.world = world
        self.folders = folders
        self.chance = chance
        self.is_echo = is_echo
        self._version = 1

    def act(self) -> None:
        """One thing that an editor does."""
        folder = self.chance.choice(self.folders)
        match self.chance.randrange(4):
            case 0:
                self._files_changed(folder)
            case 1:
                self._open(folder)
            case _:
                self._ask(folder)

    def _files_changed(self, folder: Path) -> None:
        names = (
            "self.py",
            ".gitignore",
            ".draftline.toml",
            "pipe.py",
            "linked/passwd",
            "../x.py",
            "names.py",
            ".env",
            "ignored/a.py",
            "%00.py",
            "%ED%A0%80.py",
            "outside.py",
        )
        changes = [
            {"uri": f"{folder.as_uri()}/{self.chance.choice(names)}", "type": self.chance.randint(1, 3)}
            for _ in range(5)
        ]
        self.client.notify("workspace/didChangeWatchedFiles", {"changes": changes})

    def _open(self, folder: Path) -> None:
        """Open one of the texts that lie there, type a key into it, and ask."""
        names = ("bundle.js", "data.json", "Generic.java", "template.js", "braces.c", "nested.py", ".env", "names.py")
        path = folder / self.chance.choice(names)
        if not path.is_file():
            return
        text = path.read_text(errors="replace")
        document = {
            "uri": path.as_uri(),
            "languageId": path.suffix.strip(".") or "plaintext",
            "version": 1,
            "text": text,
        }
        self.client.notify("textDocument/didOpen", {"textDocument": document})
        end = {"line": text.count("\n"), "character": len(text) - text.rfind("\n") - 1}
        self._complete(path.as_uri(), end, folder)
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})

    def _ask(self, folder: Path) -> None:
        uri = (folder / "good.py").as_uri()
        self._version += 1
        text = f"from names import {own_canary(folder.as_uri())}\nvalue_{self._version} = "
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": document})
        self.world.tally.counts["edits"] += 1
        items = self._complete(uri, {"line": 1, "character": len(text.rpartition("\n")[2])}, folder)
        if self.is_echo and items != [echo(text, "")]:
            self.world.tally.found(f"a good document in a hostile workspace gets {len(items)} items")

    def _complete(self, uri: str, position: dict[str, int], folder: Path) -> list[str]:
        sent = time.monotonic()
        params = {"textDocument": {"uri": uri}, "position": position, "context": {"triggerKind": 1}}
        self.world.tally.counts["requests"] += 1
        try:
            reply = self.client.reply(self.client.ask("textDocument/inlineCompletion", params), ANSWER_S)
        except TimeoutError:
            self.world.tally.found(f"{Path(uri).name}: no answer within {ANSWER_S:.0f} s")
            return []
        self.world.tally.waited(sent)
        if "error" in reply:
            self.world.tally.found(f"a request in a hostile workspace is refused: {reply['error']['message'][:100]}")
            return []
        texts = [item["insertText"] for item in reply["result"]["items"]]
        for text in texts:
            if SECRET in text or strangers(text, folder.as_uri()):
                self.world.tally.found("a canary in a suggestion")
        return texts


def run(tally: Round, acts: int = _ACTS) -> None:
    """One round: two hostile workspaces in one server."""
    chance = random.Random(tally.seed)
    is_echo = chance.random() > _TINY_SHARE
    with World(tally, echo=is_echo) as world:
        folders = [make_workspace(world.folder / name, chance) for name in ("one", "two")]
        model = "echo" if is_echo else str(write_tiny_model(world.folder / "tiny"))
        backend = "auto" if is_echo else "transformers"
        client = world.ready(folders=tuple(folders), model=model, backend=backend, maxTokens=8)
        visitor = Visitor(client, world, folders, chance, is_echo=is_echo)
        for _ in range(acts):
            visitor.act()
        world.check_server_memory(client)
        for host in world.hosts():
            tally.counts["host_mb"] = max(tally.counts["host_mb"], host.memory_info().rss // 1_000_000)
        world.leave(client)
