"""Further suggestions besides the first: exact branches of it, or superposed drafts."""
