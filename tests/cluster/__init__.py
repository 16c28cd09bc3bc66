"""Spark on several workers, and state in object storage: both with real servers on this machine."""
