"""What each project's models hold, and in how many rows they are not what they would be if built anew."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from benchmarks.tpcdi.in_duckdb import WAREHOUSE
from benchmarks.tpcdi.ways import SCHEMA, stored
from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.trace.layout import Storage

_STATE = ".dbt_incremental_dd"


def wrong_rows(way: str, folder: Path, rebuilt: Path) -> dict[str, int]:
    """By model, how many rows it has too many or too few, where it has any. ``rebuilt``: the project of tables."""
    found = {model: _different(_rows(way, folder, model), _rows("table", rebuilt, model)) for model in stored(way)}
    return {model: count for model, count in found.items() if count}


def _rows(way: str, folder: Path, model: str) -> pa.Table:
    """A model's rows, and how often each comes."""
    if way == "differential":
        return Collection(Storage(str(folder / _STATE)), f"{SCHEMA}.{model}").as_of()
    if way == "duckdb":
        with duckdb.connect(str(folder / WAREHOUSE), read_only=True) as connection:
            return _counted(connection.table(model).to_arrow_table())
    place = folder / _STATE / "warehouse" / f"{SCHEMA}.db" / model
    if (place / "_delta_log").exists():
        table = DeltaTable(str(place)).to_pyarrow_table()
    else:
        table = duckdb.sql(f"select * from read_parquet('{place}/*.parquet')").to_arrow_table()
    return _counted(table)


def _counted(table: pa.Table) -> pa.Table:
    return table.append_column(DIFF, pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))


def _different(ours: pa.Table, rebuilt: pa.Table) -> int:
    """Rows of either that the other one does not have, in the columns of what was rebuilt."""
    columns = ", ".join(f'"{name}"' for name in rebuilt.column_names if name != DIFF)
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("ours", ours)
        connection.register("rebuilt", rebuilt)
        negated = f"select {columns}, -{DIFF} as {DIFF} from rebuilt"
        both = f"select {columns}, {DIFF} from ours union all by name {negated}"
        sums = f"select sum({DIFF}) as difference from ({both}) group by {columns} having difference <> 0"
        (total,) = connection.execute(f"select coalesce(sum(abs(difference)), 0) from ({sums})").fetchone() or (0,)
    return int(total)
