"""One age of figures: a named set of benchmarks, one file of what they printed, and the tables rendered from it."""
