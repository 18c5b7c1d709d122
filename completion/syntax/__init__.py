"""What the text itself says: its languages, brackets, indentation, block ends and parse trees."""
