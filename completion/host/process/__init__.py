"""The engine host as a process: address, sockets, log, start and exit."""
