"""Reading collections by SQL."""
