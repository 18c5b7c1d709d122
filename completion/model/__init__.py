"""The code model: its sources, its forward pass, its cache, and how a token is drawn from its logits."""
