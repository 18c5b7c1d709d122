"""Drafters that guess the next tokens, and the verification of their guesses. Knows tokens and trees, never editors."""
