"""What other files of the workspace contribute to a prompt: definitions, outlines, similar code; never secret files."""
