"""TCP's keep-alive probes, which notice that the other end of an idle connection has gone without closing it."""

from __future__ import annotations

import socket

IDLE_S = 30
"""Time without a byte until the first probe, in seconds. Within the systems' own two hours an editor would show
a host as ready that has lost its power."""
INTERVAL_S = 10
"""Time between two probes, in seconds."""
PROBES = 3
"""Number of probes without an answer that end the connection."""

_TIMES = {"TCP_KEEPIDLE": IDLE_S, "TCP_KEEPALIVE": IDLE_S, "TCP_KEEPINTVL": INTERVAL_S, "TCP_KEEPCNT": PROBES}
"""Values by the names of the options; macOS calls the first one by the second name."""


def keep_alive_options() -> list[tuple[int, int, int]]:
    """Return level, name and value of the options of a TCP socket; connections have those of their listener."""
    known = [(getattr(socket, name), value) for name, value in _TIMES.items() if hasattr(socket, name)]
    times = [(socket.IPPROTO_TCP, option, value) for option, value in known]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *times]
