"""A simulated person types real code with draftline and with llama.vim."""
