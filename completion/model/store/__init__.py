"""Where weights come from: Python packages, local files, the hub; converted once and kept in a cache."""
