"""Accuracy of the forward passes."""
