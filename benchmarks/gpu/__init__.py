"""Correctness and speed of the GPU path."""
