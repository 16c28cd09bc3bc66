"""Files read on the driver, and what is written of them."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import DOUBLE, LONG, STRING
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow


def test_a_column_with_nan_has_no_statistics(tmp_path: Path) -> None:
    """Spark would skip row groups by them: NaN > 1.0 there, and Arrow counts it neither as minimum nor as maximum."""
    rows = pa.table({"a": [0.5, math.nan, None], "b": [0.5, None, 1.0], "dd_time": [1, 1, 1], "dd_diff": [1, 1, 1]})
    schema = Schema((Column("a", DOUBLE), Column("b", DOUBLE), TIME_COLUMN, DIFF_COLUMN))
    file = write_arrow(Storage(str(tmp_path)), str(tmp_path), rows, schema)
    group = pq.read_metadata(tmp_path / file.path).row_group(0)
    known = [group.column(i).statistics for i in range(4)]
    assert [stats is not None and stats.has_min_max for stats in known] == [False, True, True, True]
    assert (file.first, file.last) == (1, 1)


def test_no_values_match_nothing(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    schema = Schema((Column("k", LONG), Column("v", STRING)))
    file = write_arrow(storage, str(tmp_path), pa.table({"k": [1, 2, None], "v": ["a", "b", "c"]}), schema)
    found = {name: read_files(storage, str(tmp_path), [file], schema, {name: values}).num_rows for name, values in KEYS}
    assert found == {"v": 0, "k": 1}


KEYS: list[tuple[str, list[object]]] = [("v", []), ("k", [2, 9])]
