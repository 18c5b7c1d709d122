"""The `draftline` command: one module for each subcommand."""
