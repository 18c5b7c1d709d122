"""How much of a suggested text to show."""
