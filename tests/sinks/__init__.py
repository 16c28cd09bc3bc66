"""What is published of a collection's changes."""
