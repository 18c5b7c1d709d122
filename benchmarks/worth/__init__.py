"""How much of a suggested line to show."""
