"""What hostile workspaces achieve, and what safety costs."""
