"""The prompt: its plan, its layout by model family, token healing, and its token budget."""
