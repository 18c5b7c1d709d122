"""The cost of a forward pass, beside llama.cpp and transformers."""
