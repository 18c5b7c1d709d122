"""What drafting is worth."""
