"""From Spark SQL to a logical plan: names are resolved as Spark resolves them, scalar expressions are kept as text."""
