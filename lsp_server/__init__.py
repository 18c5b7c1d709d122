"""The language server: handles documents, positions and editors; loads no model."""
