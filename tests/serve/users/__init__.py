"""Users of the server, and their rights."""
