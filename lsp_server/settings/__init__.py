"""The settings, their sources, and experiments that compare two values of a setting."""
