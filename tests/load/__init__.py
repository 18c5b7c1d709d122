"""The asynchronous tests while other programs keep the processors busy: what passes by chance fails here."""
