"""The int8 path on a CPU: packed weights, the cache, and the forward pass."""
