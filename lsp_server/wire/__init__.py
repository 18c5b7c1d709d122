"""The JSON-RPC protocol, and the detection of the end of the client's process."""
