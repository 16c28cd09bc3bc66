"""Events that clients send to the server as a source."""
