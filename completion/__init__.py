"""Turns prefix, suffix and workspace into suggestions: the engine, and the types that its stages exchange."""
