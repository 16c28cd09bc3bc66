"""Observers of runs: what other systems are told of them. One a file; nothing of them is imported unless it is
configured."""
