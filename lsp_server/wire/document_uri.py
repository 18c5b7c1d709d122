"""One identity of each document and folder: clients spell one URI in several ways, the server has one spelling of it.

The protocol replaces the URIs of incoming messages by it and gives each client its own spelling back, so what has a
URI for a key, hashes it or compares it never sees another one.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlsplit

_KEYS = frozenset({"uri", "rootUri", "document"})
"""Keys of the protocol whose strings are URIs: of documents, folders, and the cells of notebooks."""
_MAX_KNOWN = 4096
"""Maximum number of URIs whose path, and of those whose client's spelling, is remembered."""
_ESCAPED_DELIMITER = re.compile("%(23|25|2f|3f)", re.IGNORECASE)


def path_of(uri: str) -> Path | None:
    """Return the normalised path of a file URI; None for another scheme and for a path that no system allows.

    Links stay as they were opened. Where the disk ignores case, the path is spelled as its folders list it.
    """
    return named_path(uri) if uri[:5].lower() == "file:" else None


@lru_cache(_MAX_KNOWN)
def named_path(uri: str) -> Path | None:
    """Return the path in a URI of any scheme, as `path_of` does: `git:/a/b.py?HEAD` is a version of `/a/b.py`."""
    try:
        parts = urlsplit(uri)
        named = os.fsdecode(unquote_to_bytes(parts.path))
        host = parts.netloc if parts.scheme == "file" and parts.netloc.lower() != "localhost" else ""
        if sys.platform == "win32" and re.match("/[A-Za-z]:", named):
            named = named[1].lower() + named[2:]
        path = Path(os.path.normpath(f"//{host}{named}" if host else named))
        path.lstat()
    except ValueError:  # not a URI, or a lone surrogate or zero byte in it
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
    return reduce(_as_listed, path.parts[1:], Path(path.anchor)) if path.is_absolute() else None


def identity_of_uri(uri: str) -> str:
    """Return the server's spelling of a URI."""
    path = path_of(uri)
    if path is not None:
        return path.as_uri()
    scheme, _, rest = uri.partition(":")
    decodable = _ESCAPED_DELIMITER.sub(lambda found: f"%25{found[1].upper()}", rest)  # these stay: they are no text
    try:
        return f"{scheme.lower()}:" + quote(unquote_to_bytes(decodable), safe="/?#%:@!$&'()*+,;=[]~")
    except ValueError:  # a lone surrogate
        return uri


class Spellings:
    """How one client spells the URIs of its documents and folders."""

    def __init__(self) -> None:
        self._spelled: dict[str, str] = {}

    def inward(self, message: Any) -> Any:  # noqa: ANN401 - JSON
        """Return a client's message with the server's spelling of all URIs."""
        return _with_uris(message, self._identified)

    def outward(self, message: Any) -> Any:  # noqa: ANN401 - JSON
        """Return a message with the client's spelling of all URIs."""
        return _with_uris(message, lambda uri: self._spelled.get(uri, uri))

    def _identified(self, uri: str) -> str:
        identity = identity_of_uri(uri)
        if self._spelled.pop(identity, identity) != uri or identity != uri:
            self._spelled[identity] = uri
        if len(self._spelled) > _MAX_KNOWN:
            del self._spelled[next(iter(self._spelled))]
        return identity


def _with_uris(value: Any, spelled: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_with_uris(one, spelled) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: spelled(one) if key in _KEYS and isinstance(one, str) else _with_uris(one, spelled)
        for key, one in value.items()
    }


@lru_cache(_MAX_KNOWN)
def _as_listed(folder: Path, name: str) -> Path:
    """Return the path of a name in a folder, as that lists it where the disk finds it by another case as well."""
    own, other = folder / name, folder / name.swapcase()
    try:
        if own == other or not os.path.samestat(own.lstat(), other.lstat()):
            return own
        names = os.listdir(folder)  # noqa: PTH208 - of a folder with very many files, paths take long
    except OSError:
        return own
    folded = name.casefold()
    listed = [each for each in names if each.casefold() == folded]
    return own if name in listed or not listed else folder / listed[0]
