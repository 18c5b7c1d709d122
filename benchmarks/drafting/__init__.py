"""What drafting brings."""
