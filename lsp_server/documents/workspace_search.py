"""Searches the workspace's folders for the files that may be sent to the engine, and reads which of them changed."""

from __future__ import annotations

import heapq
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath

from lsprotocol import types

from completion.paths import expanded
from lsp_server.documents.file_policy import FilePolicy
from lsp_server.documents.rules.ignore_rules import IgnoreRules
from lsp_server.documents.rules.repository import RULE_FILES
from lsp_server.documents.workspace_folders import Folder, FolderFile, WorkspaceFolders
from lsp_server.wire.document_uri import path_of
from lsp_server.workspace_reader import Identity

MAX_FILE_BYTES = 300_000
"""Maximum size of a file that is sent. Larger files are mostly generated."""

MAX_SCAN_BYTES = 20_000_000
"""Maximum total size of the files that one scan chooses."""

_ROOT = Path("/")
_KERNEL_FOLDERS = frozenset({("proc",), ("sys",), ("dev",), ("run",)})
"""Folders of "/" that the system makes up. Their files are always new, so they would take all the room."""

_MAX_VISITS_PER_FILE = 20  # entries of folders that a scan looks at for each file that it may send
_MAX_ASKED = 500  # files about which git is asked at once
_MAX_NEIGHBOURS = 1000  # entries that are looked at next to a document that is opened
_SHARES = 8  # of these entries, one folder has at most this fraction before all other folders are visited

# Files and folders that are useless for completion, whether or not they are ignored.
_NOISE_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
_NOISE = IgnoreRules(b"*.lock\n*.min.*\n*.map\n*.svg\npackage-lock.json", max_globs=10)
_BINARY_ENDINGS = frozenset({
    ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".ico", ".icns", ".tif", ".tiff", ".webp", ".avif", ".heic", ".psd",
    ".mp3", ".wav", ".ogg", ".flac", ".m4a", ".aac", ".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".wmv",
    ".ttf", ".otf", ".woff", ".woff2", ".eot", ".glb", ".fbx", ".blend",
    ".pdf", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".odt", ".ods", ".odp",
    ".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".jar", ".war", ".whl", ".deb", ".rpm",
    ".dmg", ".iso", ".apk",
    ".o", ".obj", ".a", ".lib", ".so", ".dylib", ".dll", ".exe", ".class", ".pyc", ".pyo", ".pyd", ".wasm",
    ".db", ".sqlite", ".sqlite3", ".npy", ".npz", ".pkl", ".pickle", ".parquet", ".feather", ".arrow", ".h5",
    ".hdf5", ".pt", ".ckpt", ".onnx", ".safetensors", ".gguf", ".tflite", ".bin",
})  # fmt: skip
"""Endings of binary files. The feed discards every binary file once it is read; these take no room from others."""


def search(
    policies: Mapping[Folder, FilePolicy],
    near: set[Path],
    roots: set[Path],
    limit: int,
    is_current: Callable[[], bool],
    words: frozenset[str] = frozenset(),
) -> list[FolderFile]:
    """Return the files to send: first those in the folders `near`, then those that `words` name, then the newest.

    It may run on a thread. All files are looked at, but only those that come first are judged by their names.

    Args:
        policies: The folders to search, each with the policy that decides on its files.
        near: Folders whose files come first.
        roots: All root folders. A file below one counts in none above it.
        limit: Maximum number of files.
        is_current: Returns whether the result is still wanted; if not, the search ends early.
        words: Words of the open documents, the names that they import among them.
    """
    near_names = set(map(str, near))
    folders = list(policies)
    found: list[tuple[int, float, int, int, str]] = []  # of plain values, among which no garbage is searched
    for number, (folder, policy) in enumerate(policies.items()):
        for path, facts in _files(folder, policy, near, roots, limit * _MAX_VISITS_PER_FILE, is_current):
            if facts.st_size <= MAX_FILE_BYTES and stat.S_ISREG(facts.st_mode):
                above, _, name = path.rpartition("/")
                rank = 0 if above in near_names else 1 if name.partition(".")[0] in words else 2
                heapq.heappush(found, (rank, -facts.st_mtime, facts.st_size, number, path))  # sorts without a pause
    chosen: list[FolderFile] = []
    total = 0
    while found and len(chosen) < limit and is_current():
        first = [heapq.heappop(found) for _ in range(min(_MAX_ASKED, len(found)))]
        likely = {FolderFile(folders[number], Path(path)): (rank, size) for rank, _, size, number, path in first}
        for folder, policy in policies.items():
            policy.ask([file.path for file in likely if file.folder == folder])
        for file, (rank, size) in likely.items():
            is_useless = is_noise(file.name) or (rank > 0 and _is_of_programs(file.path.parent, file.folder.path))
            is_fit = not is_useless and len(chosen) < limit and total + size <= MAX_SCAN_BYTES
            if is_fit and policies[file.folder].refusal(file.path) is None:
                total += size
                chosen.append(file)
    while found:
        del found[-1000:]  # to free all at once would keep other threads waiting
    return chosen


def _files(
    folder: Folder, policy: FilePolicy, near: set[Path], roots: set[Path], visits: int, is_current: Callable[[], bool]
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files below a folder that are not ignored: as git lists them, else as they are found."""
    names = policy.listed(is_current)
    found = (entry.path for entry in _walk(folder, policy, near, roots, visits, is_current))
    inner = tuple(f"{each.relative_to(folder.path).as_posix()}/" for each in roots if folder.path in each.parents)
    root = f"{folder.path}{os.sep}".replace(2 * os.sep, os.sep)
    for path in found if names is None else (root + name for name in names if not name.startswith(inner)):
        if not is_current():
            return
        with suppress(OSError):  # deleted since its folder was listed
            yield path, os.lstat(path)


def search_folder(path: Path, folder: Folder, policy: FilePolicy) -> list[FolderFile]:
    """Return the files to send of one folder, without those of folders in it. It may run on a thread."""
    found: list[FolderFile] = []
    entries = _entries(path, _MAX_NEIGHBOURS)
    policy.ask([Path(entry.path) for entry in entries])
    for entry in entries:
        if entry.is_file(follow_symlinks=False) and _may_enter(entry, folder, policy):
            with suppress(OSError):  # deleted since the folder was listed
                found += [FolderFile(folder, Path(entry.path))] if entry.stat().st_size <= MAX_FILE_BYTES else []
    return found


def exchanged(
    found: Sequence[FolderFile], has: Mapping[FolderFile, Identity | None], near: set[Path], limit: int
) -> dict[FolderFile, bool]:
    """Return which files the engine shall get of those that were found, and which it gives back as there is no room.

    Args:
        found: Files of a folder in `near`.
        has: The files that the engine has or will have, those that matter least last.
        near: Folders whose files stay.
        limit: Maximum number of files.
    """
    new = [file for file in found if file not in has]
    is_full = sum(identity[1] for identity in has.values() if identity) > MAX_SCAN_BYTES - MAX_FILE_BYTES
    surplus = max(len(has) + len(new) - limit, len(new) if is_full else 0, 0)
    far = [file for file in reversed(list(has)) if file.path.parent not in near][:surplus]
    return dict.fromkeys(far, False) | dict.fromkeys(new[: max(0, len(new) - surplus + len(far))], True)


def read_changes(
    events: Sequence[types.FileEvent],
    folders: WorkspaceFolders,
    policy: Callable[[Folder], FilePolicy],
    sent: frozenset[FolderFile],
) -> tuple[list[FolderFile], list[FolderFile]] | None:
    """Return the files that the engine has and that changed or are gone, perhaps with their folder, and new ones.

    None if the workspace must be searched: an ignore file changed, or a folder appeared, of whose files a client may
    report none. It may run on a thread: whoever checks out a branch causes thousands of events.
    """
    paths = {path: event.type for event in events if (path := path_of(event.uri))}
    files = {file: kind for path, kind in paths.items() if (file := folders.file_at(path))}
    created = [file for file, kind in files.items() if kind is types.FileChangeType.Created]
    is_rule_changed = any(path.name in RULE_FILES for path in paths)  # a repository's may lie above its folder
    if is_rule_changed or any(_is_new_folder(file, policy) for file in created):
        return None
    deleted = {file.path for file, kind in files.items() if kind is types.FileChangeType.Deleted}
    below = [file for file in sent if deleted and not deleted.isdisjoint(file.path.parents)]
    new = [file for file in files if file not in sent and not _is_useless(file)]
    return [*sent.intersection(files), *below], new


def _is_useless(file: FolderFile) -> bool:
    """Return whether a search would leave a file out."""
    return is_noise(file.name) or _is_of_programs(file.path.parent, file.folder.path)


def _is_new_folder(file: FolderFile, policy: Callable[[Folder], FilePolicy]) -> bool:
    """Return whether a path that appeared is a folder with files that may be sent."""
    if not _entries(file.path, 1) or is_noise(file.name, is_folder=True):
        return False
    if _is_of_programs(file.path, file.folder.path):
        return False
    return policy(file.folder).refusal(file.path, is_folder=True) is None


def _walk(
    folder: Folder, policy: FilePolicy, near: set[Path], roots: set[Path], visits: int, is_current: Callable[[], bool]
) -> Iterator[os.DirEntry[str]]:
    """Yield the files below a folder that the policy allows, without following links or entering another root.

    The search goes level by level, but first to the folders `near`. What a folder has beyond its share comes last. Of
    "/" and of the user's home folder, it leaves out what the system and programs keep there.
    """
    ways = {above for path in near for above in (path, *path.parents)}
    share = -(-visits // _SHARES)
    queue = deque([folder.path])
    rest: list[os.DirEntry[str]] = []
    while visits > 0 and (queue or rest):
        if queue:
            listed = sorted(_entries(queue.popleft(), visits), key=lambda entry: Path(entry.path) not in ways)
            entries = listed[:share]
            rest += listed[share:]
        else:
            entries, rest = rest[:visits], []
        visits -= len(entries)
        for entry in entries:
            if not is_current():
                return
            path = Path(entry.path)
            if path in roots or not _may_enter(entry, folder, policy):
                continue
            if entry.is_file(follow_symlinks=False):
                yield entry
            elif entry.is_dir(follow_symlinks=False) and (path in ways or not _is_of_programs(path, folder.path)):
                (queue.appendleft if path in ways else queue.append)(path)


def is_noise(path: str, *, is_folder: bool = False) -> bool:
    """Return whether a file or folder is useless for completion, judged by its path below the workspace's folder."""
    *folders, name = path.lower().split("/")
    folders += [name] * is_folder
    is_binary = not is_folder and PurePosixPath(name).suffix in _BINARY_ENDINGS
    is_named = is_binary or _NOISE.verdict(os.fsencode(name), is_folder=is_folder)
    return bool(is_named) or not _NOISE_FOLDERS.isdisjoint(folders)


def _is_of_programs(path: Path, workspace: Path) -> bool:
    """Return whether a folder is the kernel's or in a hidden one of the user's home, and the workspace is neither."""
    home = expanded("~")
    is_in_home = home.is_relative_to(workspace) and home in path.parents
    is_hidden = is_in_home and path.relative_to(home).parts[0].startswith(".")
    return is_hidden or (workspace == _ROOT and path.parts[1:2] in _KERNEL_FOLDERS)


def _may_enter(entry: os.DirEntry[str], folder: Folder, policy: FilePolicy) -> bool:
    """Return whether a file may be sent, or a folder searched, of those below a folder of the workspace."""
    is_folder = entry.is_dir(follow_symlinks=False)
    path = Path(entry.path)
    is_useless = is_noise(FolderFile(folder, path).name, is_folder=is_folder)
    return not is_useless and not policy.refusal(path, is_folder=is_folder)


def _entries(folder: Path, max_entries: int) -> list[os.DirEntry[str]]:
    """Return at most `max_entries` entries of a folder: its folders, then the others, each sorted by name."""
    try:
        with os.scandir(folder) as entries:
            return sorted(islice(entries, max_entries), key=_folders_first)
    except OSError:
        return []


def _folders_first(entry: os.DirEntry[str]) -> tuple[bool, str]:
    return not entry.is_dir(follow_symlinks=False), entry.name
