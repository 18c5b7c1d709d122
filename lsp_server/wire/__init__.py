"""The JSON-RPC protocol, and the spelling of its URIs."""
