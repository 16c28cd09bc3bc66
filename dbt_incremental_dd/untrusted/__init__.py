"""SQL written by others: which statements are allowed, and what they may consume."""
