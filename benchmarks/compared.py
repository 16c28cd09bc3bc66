"""What benchmarks share that run one project as several materializations over the same Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
