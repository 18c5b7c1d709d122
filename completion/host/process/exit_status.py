"""Exit statuses of the engine host, which the language server reads."""

from __future__ import annotations

ALREADY_RUNNING = 75
"""Exit status if another process already serves this model: EX_TEMPFAIL of sysexits.h."""
LOADING_FAILED = 70
"""Exit status if the model failed to load: EX_SOFTWARE of sysexits.h. The clients have received the error."""
