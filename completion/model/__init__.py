"""The code model: where it comes from, its forward pass, its cache, how a token is drawn from its logits."""
