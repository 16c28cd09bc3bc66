"""TPC-H's q03, q09 and q18 in differential dataflow itself, in memory, beside our models."""
