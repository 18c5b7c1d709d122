"""Sources of guesses: the prompt, the workspace, and the tokens that the model rated likely before."""
