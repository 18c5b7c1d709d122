"""Names of files and folders that are useless for completion: dependencies, generated and binary files."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from lsp_server.documents.rules.ignore_rules import IgnoreRules

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


def is_noise(path: str, *, is_folder: bool = False) -> bool:
    """Return whether a file or folder is useless for completion, judged by its path below the workspace's folder."""
    *folders, name = path.lower().split("/")
    folders += [name] * is_folder
    is_binary = not is_folder and PurePosixPath(name).suffix in _BINARY_ENDINGS
    is_named = is_binary or _NOISE.verdict(os.fsencode(name), is_folder=is_folder)
    return bool(is_named) or not _NOISE_FOLDERS.isdisjoint(folders)
