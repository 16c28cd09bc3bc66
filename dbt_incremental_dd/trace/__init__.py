"""Collections on storage: a Delta table each, whose frontiers move in the same commit as its batches.

``layout``, ``log`` and ``files`` need neither Spark nor a JVM; ``read``, ``write`` and ``compact`` work with a
Spark session that they are given.
"""
