"""What connectors of the catalog's relations have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check(spec: SourceSpec) -> None:
    """Raises ConfigError where a relation is read, and there is a path as well."""
    if spec.path is not None:
        raise ConfigError(
            f"source {spec.name}: connector {spec.connector} reads relation {spec.relation}, and path is {spec.path}",
            "Leave one of them out.",
        )


def sight(storage: Storage, spec: SourceSpec) -> None:
    """Only a run can tell: the catalog knows where a relation is."""


def look_every(spec: SourceSpec) -> float:
    """There is nothing to see."""
    return 0.0


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
