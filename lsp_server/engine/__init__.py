"""The language server's client of the engine host: finds, starts and watches the host, and streams completions."""
