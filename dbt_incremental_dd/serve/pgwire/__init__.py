"""Postgres' wire protocol, version 3: SELECT and SUBSCRIBE for psql, drivers and BI tools."""
