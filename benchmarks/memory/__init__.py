"""Memory of the engine and the language server while documents come and go."""
