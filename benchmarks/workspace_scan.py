"""What `python -m benchmarks.workspace_index --files N` measures: a scan of N files, and a key in a large one."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from lsprotocol import types

from completion.host.wire import encode
from completion.request import Closing, WorkspaceFile, WorkspaceUpdate
from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.workspace_feed import WorkspaceFeed
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.engine.client import SentTexts
from lsp_server.settings.table import Settings

TARGETS = {"longest_block_ms": 20.0, "cpu_s": 3.0, "sent_bytes_per_key": 200.0}
OPEN_FILE_BYTES = 300_000
_FILES_PER_FOLDER = 50
_LOOK_S = 0.001


def report(files: int) -> None:
    """Print what a scan of a repository of `files` files takes, then one line of JSON."""
    gc.freeze()  # as the language server does: what is loaded is no garbage, and no collection looks at it
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        _write(root, files)
        figures = asyncio.run(_scan(root)) | {"sent_bytes_per_key": float(bytes_per_key())}
    print(f"{'':24}{'measured':>10}{'target':>10}   (a repository of {files:,} files)")
    for name, value in figures.items():
        print(f"{name:24}{value:10.3f}{TARGETS.get(name, float('nan')):10.1f}")
    print(json.dumps({"benchmark": "workspace_index", "files": files, **figures}))


def bytes_per_key() -> int:
    """Return the size of the message that a key in a large open file sends."""
    sent, line = SentTexts(), "value = read(stream)\n"
    text = line * (OPEN_FILE_BYTES // len(line))
    middle = len(text) // 2
    for version in (text, f"{text[:middle]}x{text[middle:]}"):
        file = WorkspaceFile("package/module.py", version, open=True)
        message = encode(sent.shortened(WorkspaceUpdate("file:///home/me/project", (file,))))
    return len(message)


def _write(root: Path, files: int) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    body = "".join(
        f"def function_{line}(first, second):\n    return first + second * {line}\n\n\n" for line in range(20)
    )
    for number in range(files):
        folder = root / f"package_{number // _FILES_PER_FOLDER % 100}" / f"part_{number // _FILES_PER_FOLDER // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"module_{number}.py").write_text(f"import os\n\n{body}")


async def _scan(root: Path) -> dict[str, float]:
    """Return the times until the first files are sent and until all are, and the longest block of the event loop."""
    folders, first_cpu_s = WorkspaceFolders(), 0.0
    folders.add([types.WorkspaceFolder(root.as_uri(), "project")])
    wall_s, cpu_s = time.perf_counter(), time.process_time()

    async def send(message: WorkspaceUpdate | Closing) -> None:
        nonlocal first_cpu_s
        if isinstance(message, WorkspaceUpdate) and message.changed and not first_cpu_s:
            first_cpu_s = time.process_time() - cpu_s

    feed = WorkspaceFeed(folders, DocumentStore(), send, lambda _uri: Settings(), pause_s=0)
    blocks: list[float] = []
    watching = asyncio.create_task(_watch(blocks))
    await feed.scan()
    await feed.idle()
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    await feed.close()
    return {"index_s": time.perf_counter() - wall_s, "longest_block_ms": 1e3 * max(blocks), "cpu_s": first_cpu_s}


async def _watch(blocks: list[float]) -> None:
    """Note by how much the event loop is late each millisecond, whether it computes or waits for another thread."""
    while True:
        due = time.perf_counter() + _LOOK_S
        await asyncio.sleep(_LOOK_S)
        blocks.append(time.perf_counter() - due)
