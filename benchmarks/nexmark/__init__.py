"""Nexmark: its 23 queries, q0 to q22, as models over the events of an auction house."""
