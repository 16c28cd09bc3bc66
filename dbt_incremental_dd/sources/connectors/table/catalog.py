"""What the catalog tells of a relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Described:
    """A relation as the catalog tells of it. ``kind``: MANAGED, EXTERNAL, VIEW, ...; ``partitioned_by``: columns with
    the types that they are declared with."""

    kind: str | None = None
    provider: str | None = None
    location: str | None = None
    partitioned_by: Mapping[str, str] = field(default_factory=dict)


def described(spark: SparkSession, relation: str, partition: str = "") -> Described:
    """A relation, or one of its partitions (``PARTITION (...)``); nothing where that cannot be told."""
    from pyspark.errors import AnalysisException  # not at the start: it takes long

    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {relation} {partition}").collect()
    except AnalysisException:
        return Described()
    # Columns come first, then headlines, each with what belongs to it: a column may be called as what is told later.
    told: dict[str, dict[str, str]] = {}
    for row in rows:
        name, value = row["col_name"], row["data_type"]
        if name.startswith("# ") and name != "# col_name":
            told[name] = {}
        elif told and name and name != "# col_name":
            told[list(told)[-1]].setdefault(name, value)
    table = told.get("# Detailed Table Information", {})
    own = told.get("# Detailed Partition Information", {}) if partition else table
    by = told.get("# Partition Information", {})
    return Described(table.get("Type"), str(table.get("Provider", "")).lower(), own.get("Location"), by)
