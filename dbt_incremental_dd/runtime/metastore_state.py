"""How Derby's metastore is left: a mark of its files, and what a session finds in its catalog."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from glob import glob
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.trace.spark_reader import quote_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stamp_of(metastore: str | None) -> str | None:
    """Tells apart any two openings of Derby's files, and any two states of them; None where there are none.

    ``metastore``: their folder; None for a catalog of another kind.
    """
    if metastore is None:
        return None
    names = ["service.properties", "dbex.lck", *sorted(glob("log/log*", root_dir=metastore))]
    try:
        states = [os.stat(f"{metastore}/{name}") for name in names]
    except OSError:
        return None
    marks = [(name, s.st_ino, s.st_mtime_ns, s.st_size) for name, s in zip(names, states, strict=True)]
    return hashlib.sha256(json.dumps([metastore, marks]).encode()).hexdigest()


def contents(spark: SparkSession, schemas: Iterable[str]) -> dict[str, Any]:
    """All schemas, and the relations of some of them, whoever has made them."""
    found = sorted(row[0].lower() for row in spark.sql("SHOW SCHEMAS").collect())
    known = [schema for schema in sorted(schemas) if schema in found]
    return {
        "schemas": found,
        "views": {schema: _names(spark, "VIEWS", "viewName", schema) for schema in known},
        "names": {schema: _names(spark, "TABLES", "tableName", schema) for schema in known},
    }


def _names(spark: SparkSession, kind: str, column: str, schema: str) -> list[str]:
    rows = spark.sql(f"SHOW {kind} IN {quote_name(schema)}").collect()
    return sorted(row[column].lower() for row in rows if not row["isTemporary"])
