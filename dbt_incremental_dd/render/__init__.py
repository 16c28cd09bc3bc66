"""Spark twins of the differential plan's operators. Plans decide; rendering obeys."""
