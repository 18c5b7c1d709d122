"""Our forward pass of each model family against transformers."""
