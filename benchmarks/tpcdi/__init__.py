"""TPC-DI's brokerage: its files over time.

Tables, file formats and rules follow TPC Benchmark DI, specification 1.1.0, clauses 2 to 4; proportions are about those
of its generator. The text of all values is our own.
"""
