"""Which files are ignored: by git, by ignore files that are read here, and by useless names."""
