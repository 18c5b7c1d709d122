"""How many typists one machine serves: real typing of several people at once on our host and on model servers."""
