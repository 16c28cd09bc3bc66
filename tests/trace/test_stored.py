"""Collections as they are read without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import DOUBLE, FLOAT, Type
from dbt_incremental_dd.trace.arrow_reader import changes, consolidated, contents
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow


@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT], ids=str)
def test_zeros_are_equal_and_so_are_nans(tmp_path: Path, dtype: Type) -> None:
    """What came as -0.0 is taken away as 0.0 where Spark has summed it up."""
    place = Storage(str(tmp_path)).collection("m.kept")
    visible = Schema((Column("f", dtype),))
    log = place.create(Schema((*visible.columns, TIME_COLUMN, DIFF_COLUMN)))
    updates = [(-0.0, 1, 1), (0.0, 1, 1), (float("nan"), 1, 1), (None, 1, 1)]
    updates += [(0.0, 2, -1), (-0.0, 2, -1), (float("nan"), 2, -1), (1.5, 2, 1)]
    kind = pa.float64() if dtype == DOUBLE else pa.float32()
    arrays = [pa.array([u[i] for u in updates], k) for i, k in enumerate((kind, pa.int64(), pa.int64()))]
    table = pa.table(arrays, names=["f", "dd_time", "dd_diff"])
    files = (write_arrow(place.storage, place.trace_uri, table, log.schema),)
    manifest = place.write_manifest(ModelManifest(schema=visible))
    log.commit(Commit(add=files, upper=3, manifest=manifest))
    found = contents(place, 2)
    assert dict(zip(found["f"].to_pylist(), found["dd_diff"].to_pylist(), strict=True)) == {None: 1, 1.5: 1}
    assert consolidated(changes(place, 0, 2)).num_rows == 2
