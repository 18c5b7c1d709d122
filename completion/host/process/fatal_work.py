"""Remembers across hosts on which texts hosts ended, so that no document or file ends one host after the other."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from completion.cancellation import CancelToken
from completion.edits import NextEditRequest, NextEdits
from completion.errors import DocumentRefusedError
from completion.host.engine_protocol import EngineLike, LoadedEngine
from completion.host.process.clients import lasting_key
from completion.memory import Held, MemoryPart
from completion.paths import writing_to
from completion.request import Closing, CompletionEvent, CompletionRequest, WorkspaceUpdate

HOSTS = 2
"""Hosts that may end on a text in a row: the first one may have ended for another reason."""
REFUSED_S = 60.0
"""Time after which a changed version of such a text is served again."""
ALONE_S = 600.0
"""Time after a host's end in which works run one by one, so that a second end tells which of several it was."""
_REMEMBERED_S = 86_400.0
_T = TypeVar("_T")


@dataclass(slots=True)
class _Deaths:
    """The hosts that ended on a document or file since one served it.

    Attributes:
        versions: Digest of its text on which each of them ended.
        last_s: When the last end was noticed, in seconds since the epoch.
    """

    versions: list[str] = field(default_factory=list)
    last_s: float = 0.0


class FatalWork:
    """What ended earlier hosts. A file names what is served now, and the next host reads on what this one ended.

    The file has digests only. If it cannot be written, ends are not counted.

    Args:
        path: The file. Only the holder of the host's lock may use it.

    Raises:
        StorageError: The file cannot be created.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._deaths: dict[str, _Deaths] = {}
        self._served: list[tuple[str, str]] = []  # what is served now: key and version of each
        self._writing = threading.Lock()  # the host closes this while the engine's thread may still write
        with writing_to(path.parent, "DRAFTLINE_RUNTIME_DIR"):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):  # damaged: start anew
            self._read()
        self._write()

    @property
    def one_by_one(self) -> bool:
        """Whether a host ended lately, perhaps on one of several works."""
        return any(abs(self._clock() - deaths.last_s) < ALONE_S for deaths in self._deaths.values())

    @contextmanager
    def serving(self, key: str, version: str) -> Iterator[None]:
        """Count this host's end within the block against a document or file, and against others of such blocks.

        Raises:
            DocumentRefusedError: Too many hosts ended on it.
        """
        self._check(key, version)
        self._served.append((key, version))
        self._write()
        try:
            yield
        finally:
            with suppress(ValueError):  # the host was closed meanwhile
                self._served.remove((key, version))
            self._write()

    def served(self, key: str) -> None:
        """Forget the hosts that ended on a document or file: this one did not."""
        if self._deaths.pop(key, None) is not None:
            self._write()

    def close(self) -> None:
        """Note that the host ends in order. The file stays only if it counts something."""
        self._served.clear()
        self._write()
        self._file = -1  # not closed: the engine's thread may still write, and the process ends
        if not self._deaths:
            with suppress(PermissionError):  # Windows removes no open file
                self._path.unlink(missing_ok=True)

    def _check(self, key: str, version: str) -> None:
        deaths = self._deaths.get(key)
        if deaths is None or len(deaths.versions) < HOSTS:
            return
        left_s = REFUSED_S - abs(self._clock() - deaths.last_s)
        if left_s > 0 or version in deaths.versions:
            raise DocumentRefusedError(
                f"{len(deaths.versions)} engines ended while they processed this document. It is refused until it is "
                f"changed and {max(left_s, 0):.0f} s have passed. The engine's log says more (`draftline doctor`)."
            )

    def _read(self) -> None:
        line, _, _ = os.read(self._file, os.fstat(self._file).st_size).partition(b"\n")
        found = json.loads(line or b"{}")
        now = self._clock()
        for key, fields in found.get("deaths", {}).items():
            if abs(now - fields["last_s"]) < _REMEMBERED_S:
                self._deaths[key] = _Deaths(**fields)
        for key, version in found.get("serving", ()):
            deaths = self._deaths.setdefault(key, _Deaths())
            deaths.versions.append(version)
            deaths.last_s = now

    def _write(self) -> None:
        """Write the file in place. Only its first line counts, so a shorter one may leave the end of a longer one."""
        message = {"serving": self._served, "deaths": {key: asdict(deaths) for key, deaths in self._deaths.items()}}
        with self._writing, suppress(OSError):  # a full disk costs the count, not the request
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, json.dumps(message).encode() + b"\n")


class CountedEngine:
    """An engine whose work is counted: it refuses a document, and leaves out a file, on which too many hosts ended."""

    def __init__(self, engine: EngineLike, fatal: FatalWork) -> None:
        self._engine = engine
        self._fatal = fatal
        self.forget: Callable[[Closing], None] = engine.forget
        self.held: Callable[[], Mapping[MemoryPart, Held]] = engine.held
        self.close: Callable[[], None] = engine.close

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """Yield the engine's events.

        Raises:
            DocumentRefusedError: Too many hosts ended on the document.
        """
        key, version = _digest(lasting_key(request.document)), _digest(*_texts(request))
        yield from self._counted(self._engine.complete(request, cancel), key, version)

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Prepare the engine. The errors are those of `complete`."""
        with self._serving(request.document, *_texts(request)):
            self._engine.prepare(request, cancel)

    def next_edits(self, request: NextEditRequest, cancel: CancelToken) -> NextEdits:
        """Return the engine's edits. The errors are those of `complete`."""
        with self._serving(request.document, *request.lines):
            return self._engine.next_edits(request, cancel)

    def update_workspace(self, update: WorkspaceUpdate, cancel: CancelToken) -> Generator[None]:
        """Update the engine piece by piece, without the files on which too many hosts ended."""
        if update.removed or not update.changed:
            yield from self._engine.update_workspace(replace(update, changed=()), cancel)
        for file in update.changed:
            pieces = self._engine.update_workspace(replace(update, changed=(file,), removed=()), cancel)
            with suppress(DocumentRefusedError):
                yield from self._counted(pieces, _digest(update.workspace, "\0", file.path), _digest(file.text))

    def _counted(self, pieces: Generator[_T], key: str, version: str) -> Generator[_T]:
        """Between two pieces other work may be served, so each piece is counted by itself."""
        with closing(pieces):
            while True:
                with self._fatal.serving(key, version):
                    try:
                        piece = next(pieces)
                    except StopIteration:
                        break
                yield piece
        self._fatal.served(key)

    @contextmanager
    def _serving(self, document: str, *text: str) -> Iterator[None]:
        """Note that a document is served; its version is the same for every cursor in the same text."""
        key = _digest(lasting_key(document))
        with self._fatal.serving(key, _digest(*text)):
            yield
        self._fatal.served(key)


def counted(loaded: LoadedEngine, fatal: FatalWork) -> LoadedEngine:
    """Return an engine whose work is counted, and whose requests run one by one for a while after a host ended."""
    return replace(loaded, engine=CountedEngine(loaded.engine, fatal), one_by_one=lambda: fatal.one_by_one)


def _texts(request: CompletionRequest) -> tuple[str, ...]:
    """Return what makes a version of a document or conversation."""
    return (request.prefix, request.suffix, *(message.content for message in request.messages))


def _digest(*parts: str) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
