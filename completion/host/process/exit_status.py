"""Exit statuses of the engine host, which the language server reads."""

from __future__ import annotations

ALREADY_RUNNING = 75
"""Another process serves this model (EX_TEMPFAIL of sysexits.h)."""
LOADING_FAILED = 70
"""The model did not load (EX_SOFTWARE). The host has reported the reason to its clients."""
