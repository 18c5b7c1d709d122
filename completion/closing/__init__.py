"""What would close a text that is not complete yet, so that its syntax can be checked."""
