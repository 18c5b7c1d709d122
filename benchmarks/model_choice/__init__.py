"""Forecasts of first text against what was measured, and the models that described machines get."""
