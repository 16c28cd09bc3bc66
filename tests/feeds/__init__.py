"""Sources that are servers: real ones."""
