"""Who guesses the next tokens, and how a guess is checked: knows tokens and trees, never editors."""
