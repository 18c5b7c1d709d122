"""A tokenizer in arrays: the library's own objects take 45 MB and half a second to read."""
