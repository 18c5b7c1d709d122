"""How languages write comments and strings, for scanning without a grammar."""
