"""How well the gate tells what users accept."""
