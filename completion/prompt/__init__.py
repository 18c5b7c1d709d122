"""What the model sees: the prompt's plan, its layout by model family, token healing, and its token budget."""
