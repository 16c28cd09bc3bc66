"""Expressions and window functions over tables on the driver, where their values are provably Spark's."""
