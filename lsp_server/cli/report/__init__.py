"""`draftline report`: the command, its terminal tables and its HTML page."""

from lsp_server.cli.report.command import add_arguments, execute

__all__ = ["add_arguments", "execute"]
