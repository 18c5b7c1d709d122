"""The grammars that benchmarks load, on one thread."""

from __future__ import annotations

from completion.grammar.grammar import Grammars

GRAMMARS = Grammars()
