"""Attacks on the whole product, for as long as one lets them run: `python -m tests.torture --minutes 10`."""
