"""Where guesses come from: the prompt, the workspace, and what the model held likely before."""
