"""When and how much to show: the worth of a text's start, and the acceptance model with its trained weights."""
