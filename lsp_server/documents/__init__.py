"""The open documents, the folders they lie in, and which of their files may be read."""
