"""The engine of a user who has a model server: the same suggestions, from tokens that the server generates."""
