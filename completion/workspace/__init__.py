"""The snippets of other files in a prompt: definitions, outlines and similar code, never from secret files."""
