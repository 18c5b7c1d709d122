"""Answers of the model that are recorded once, and what the rules of a checkout make of them."""
