"""Sources of weights: Python packages, local files, the hub. Each model is converted once and kept in a cache."""
