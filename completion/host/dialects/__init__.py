"""The host's HTTP dialects, one file each: draftline's own and those that clients of other servers know."""
