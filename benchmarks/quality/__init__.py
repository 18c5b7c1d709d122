"""How good suggestions are."""
