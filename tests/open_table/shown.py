"""A model with an open table, whose input a test changes by the numbers of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.open_table.registry import FORMATS
from tests.open_table.readers import READERS, Rows, plain
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Shown:
    """A table of numbered rows, and a model of them with an open table."""

    def __init__(
        self, spark: SparkSession, folder: Path, rows: int = 30, sql: str = "SELECT * FROM {t}", format: str = "delta"
    ) -> None:
        table = Table("id INT, g STRING, v DOUBLE", [(i, f"g{i % 3}", i / 4) for i in range(rows)])
        self.world, self.format = World(spark, folder, {"t": table}), format
        self.world.model("m", sql, output=format)
        self.world.step()

    @property
    def collection(self) -> Collection:
        return Collection(self.world.storage, f"{self.world.schema}.m")

    @property
    def uri(self) -> str:
        return self.collection.place.table_uri

    def step(self, come: range = range(0), go: range = range(0)) -> None:
        """Rows of these numbers come and go."""
        self.world.delete("t", [(i, f"g{i % 3}", i / 4) for i in go])
        self.world.insert("t", [(i, f"g{i % 3}", i / 4) for i in come])
        self.world.step()

    def as_of(self, t: int | None = None) -> Counter[tuple[Any, ...]]:
        rows = self.collection.as_of(t).to_pylist()
        names = self.collection.schema.names
        return Counter({tuple(plain(row[name]) for name in names): row[DIFF] for row in rows})

    def check(self) -> None:
        assert self.shown(self.collection.schema.names) == self.as_of()

    def shown(self, columns: Sequence[str] = ("id",), version: int | None = None) -> Rows:
        """Columns of a version's rows, as a library that knows the format reads them."""
        return READERS[self.format](self.uri, columns, version)

    def version(self) -> int:
        version = FORMATS[self.format].load(self.world.storage, self.uri)
        assert version is not None
        return version.number

    def files(self) -> int:
        return len(DeltaTable(self.uri).file_uris())


def entries(uri: str) -> list[Path]:
    """Of a Delta table's log."""
    return sorted(Path(uri, "_delta_log").glob("*.json"))
