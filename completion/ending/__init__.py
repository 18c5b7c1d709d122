"""Where a suggestion ends: each rule once, and the decision that reads the rules to stop, to show and to finish."""
