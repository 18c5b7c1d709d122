"""The language server's connection to the engine host: find it, start it, watch it, and stream from it."""
