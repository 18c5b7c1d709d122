"""Quality of suggestions."""
