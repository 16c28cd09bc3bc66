"""The ways in which sources are reached: each is one module, or one folder with its ``connector``."""
