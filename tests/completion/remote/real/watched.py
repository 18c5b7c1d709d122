"""A real model server, watched: a test acts when a reply has some tokens, and counts the replies that broke off."""

from __future__ import annotations

from completion.errors import RemoteInterruptedError


class WatchedServer:
    """The server.

    Args:
        server: The server.

    Attributes:
        after: Number of tokens of a reply after which `on_token` is called.
        on_token: What the test does then.
        interrupted: Number of replies that broke off.
    """

    def __init__(self, server):
        self._server = server
        self.after = 2
        self.on_token = lambda: None
        self.interrupted = 0

    def __getattr__(self, name):
        return getattr(self._server, name)

    def generate(self, query, cancel):
        """Yield what the server generates."""
        try:
            for number, each in enumerate(self._server.generate(query, cancel), 1):
                if number == self.after:
                    self.on_token()
                yield each
        except RemoteInterruptedError:
            self.interrupted += 1
            raise
