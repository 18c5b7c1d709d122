"""The HTTP interfaces of the host: its own and those of other servers, one file each."""
