"""The engine's process: an HTTP server around one model, shared by all editor windows of a user."""
