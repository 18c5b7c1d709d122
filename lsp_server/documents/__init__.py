"""Open documents, workspace folders, and which files may be read."""
