"""What a second model is worth: as a drafter of the model, or as one of two that answer."""
