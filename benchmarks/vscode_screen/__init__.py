"""What a real VS Code shows while someone types."""
