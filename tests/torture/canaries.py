"""Words that must stay where they are: secrets that are never read, and names that belong to one workspace."""

from __future__ import annotations

import hashlib
import re

SECRET = "CANARYSECRET"
_OWN = re.compile(r"CANARYOF([0-9a-f]{12})")


def own_canary(workspace: str) -> str:
    """A name that only files of this workspace hold; `workspace` is the folder's URI."""
    return "CANARYOF" + hashlib.sha256(workspace.encode()).hexdigest()[:12]


def strangers(text: str, workspace: str) -> set[str]:
    """Names in a text that belong to other workspaces."""
    return {f"CANARYOF{name}" for name in _OWN.findall(text)} - {own_canary(workspace)}


def has_secret(text: str) -> bool:
    """Whether a text holds what must never be read."""
    return SECRET in text
