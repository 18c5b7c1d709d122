"""Analysis of text alone: languages, brackets, indentation, block ends and parse trees."""
