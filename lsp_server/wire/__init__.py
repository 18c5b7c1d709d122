"""How messages travel: the JSON-RPC protocol, and the end of the client's process."""
