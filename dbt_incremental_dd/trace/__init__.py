"""Collections on storage: each is a Delta table whose frontiers advance in the commit that adds a batch.

``layout``, ``log``, ``files`` and ``arrow_reader`` need no JVM; ``spark_reader``, ``write_spark`` and ``compact`` use a
Spark session.
"""
