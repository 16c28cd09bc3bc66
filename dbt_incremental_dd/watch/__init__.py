"""Models kept up to date all the time: a warm session and manifest, and a run as soon as a source has something new."""
