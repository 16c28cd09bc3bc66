"""The package's version, in the one place where it is written."""

version = "0.1.0"
