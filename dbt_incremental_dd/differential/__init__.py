"""The differential plan: a logical plan in which every decision is taken - how each operator turns its inputs' deltas
into its own, what it stores, and what it probes by key. Rendering only obeys.

Linear operators (Get, Constant, Map, Filter, FlatMap, Union, Negate) stand in it as they are in the logical plan:
their delta is themselves applied to their input's delta.
"""
