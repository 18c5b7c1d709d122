"""A table of figures as data; `tables.py` has all of them, `pages.py` renders them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        what: Its first cell. A key in braces stands for that figure.
        shape: Format of its figures, as of `str.format`.
        keys: Keys of its figures, from left to right: the name of a run, then the figure's name within its object.
    """

    what: str
    shape: str
    keys: tuple[str, ...]

    @property
    def run(self) -> str:
        """Return the name of the run that prints its figures."""
        return self.keys[0].partition("/")[0]


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        heads: Heads of its columns. Below `command` stands the command of a row's run, below each other one after the
            first the next figure.
        rows: Its rows.
    """

    heads: tuple[str, ...]
    rows: tuple[Row, ...]
