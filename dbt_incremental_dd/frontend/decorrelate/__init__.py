"""Subqueries that read the outside, as plans that are computed for all of its rows at once."""
