"""Models kept up to date all the time."""
