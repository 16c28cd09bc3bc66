"""Events that clients send to sources."""
