"""The `draftline` command: one module per subcommand."""
