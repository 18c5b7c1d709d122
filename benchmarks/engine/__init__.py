"""Cost of a forward pass, compared with llama.cpp and transformers."""
