"""A relation of the catalog as a source."""
