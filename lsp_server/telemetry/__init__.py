"""Telemetry: a local store of what happened to every suggestion, without source text, and the reports on it."""
