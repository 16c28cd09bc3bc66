"""Open tables as Iceberg tables. Source: the Apache Iceberg table specification, version 2."""
