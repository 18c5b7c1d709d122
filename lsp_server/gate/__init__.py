"""The acceptance gate's model: its features, its trained weights, and its adaptation to the user."""
