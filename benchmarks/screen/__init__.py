"""What a real editor shows while someone types."""
