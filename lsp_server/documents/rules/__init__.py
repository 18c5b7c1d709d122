"""Which files are ignored: by git, and by ignore files that are read here."""
