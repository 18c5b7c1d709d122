"""Edits by instruction: the text of greedy decoding, and what drafts save."""
