"""What happened to every suggestion, in a local store without source text, and the reports on it."""
