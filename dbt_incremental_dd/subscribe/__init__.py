"""Following collections: their contents, and every change after them."""
