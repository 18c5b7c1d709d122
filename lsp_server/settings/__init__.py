"""What a user can set, where it is read from, and experiments with two values of a setting."""
