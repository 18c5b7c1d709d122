"""The host as a process: its address, its sockets, its log, its start and its end."""
