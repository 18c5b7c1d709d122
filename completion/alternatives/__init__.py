"""Alternatives to the first suggestion: exact branches of it, or superposed drafts."""
