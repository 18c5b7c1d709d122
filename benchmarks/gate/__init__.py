"""Quality of the gate's predictions of what users accept."""
