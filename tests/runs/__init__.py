"""Tests of what is noted of runs."""
