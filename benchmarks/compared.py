"""What benchmarks share that run one project as several materializations over the same Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import yaml

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPARK = "4.2"
"""For which Delta's connector is made."""
DELTA_SETTINGS = {
    "spark.jars.packages": f"io.delta:delta-spark_{SPARK}_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What merges need; the project's own models do without."""


def has_delta() -> bool:
    """Whether Delta's connector is made for the Spark that is installed."""
    return pyspark.__version__.startswith(f"{SPARK}.")


def append_source(name: str, tables: Iterable[str], types: Mapping[str, str], data: Path) -> dict[str, Any]:
    """dbt's entry of a source whose tables are folders of ``data`` that only grow; ``types`` by column."""
    columns = [{"name": column, "data_type": kind} for column, kind in types.items()]

    def table(folder: str) -> dict[str, Any]:
        reading = {"envelope": "append", "path": str(data / folder), "format": "parquet"}
        return {"name": folder, "columns": columns, "config": {"meta": {"differential": reading}}}

    return {"name": name, "schema": f"{name}_sources", "tables": [table(folder) for folder in tables]}


def write_yaml(path: Path, value: dict[str, Any]) -> None:
    """The file, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value))


def fingerprint(frame: DataFrame) -> tuple[Any, ...]:
    """The same for the same multiset of rows, and hardly for any other: their number, and two sums of hashes."""
    columns = ", ".join(f"`{name}`" for name in sorted(frame.columns))
    sums = (f"sum(CAST(xxhash64({seed}, {columns}) AS DECIMAL(38, 0)))" for seed in (1, 2))
    return tuple(frame.selectExpr("count(*)", *sums).first() or ())
