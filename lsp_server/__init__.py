"""The editor's side: a language server that knows documents and positions, never tensors."""
