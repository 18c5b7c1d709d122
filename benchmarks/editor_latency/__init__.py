"""From a key in a real Neovim to text on its screen."""
