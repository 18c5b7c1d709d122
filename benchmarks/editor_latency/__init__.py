"""Time from a key in a real Neovim to the text on its screen."""
