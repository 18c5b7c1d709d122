"""The set-ups of docs/editors.md, which the tests type as they stand there."""

from __future__ import annotations

import re
import sys

from tests.e2e.clients.forced_host import REPOSITORY

_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_PYTHON = re.compile(r'(?<!name = )"(?:/path/to/)?python"')


def set_up(section: str, language: str, number: int = 0) -> str:
    """Return a block of code of a section, with the path of this Python.

    Args:
        section: Title of the section.
        language: The block's language.
        number: Which of the blocks in this language.
    """
    page = (REPOSITORY / "docs" / "editors.md").read_text(encoding="utf-8")
    text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    code = [block for name, block in _BLOCK.findall(text) if name == language][number]
    return _PYTHON.sub(lambda _: f'"{sys.executable}"', code)
