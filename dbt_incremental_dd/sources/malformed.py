"""Records that do not fit the source's columns: an error, or set aside where they can be queried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.sources.arrival import CORRUPT, FILE, Arrival
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.exchange import as_local
from dbt_incremental_dd.trace.layout import Place
from dbt_incremental_dd.trace.log import Commit
from dbt_incremental_dd.trace.write import write_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOTHING = {False: ("",), True: ("", "null")}
"""Records that say nothing; of a Debezium feed also its tombstones."""
_SHOWN = 3
_WIDTH = 120
_SET_ASIDE = Schema((Column("file", "string"), Column("record", "string"), TIME_COLUMN, DIFF_COLUMN))


def good_records(
    spark: SparkSession, place: Place, spec: SourceSpec, arrival: Arrival, t: Time
) -> tuple[DataFrame, str]:
    """The records that fit, and a note on those that do not. Raises SourceError where these are not to be set aside."""
    frame = arrival.records
    if CORRUPT not in frame.columns:
        return frame, ""
    _, frame = as_local(spark, frame, arrival.estimate)
    names = [name for name in (FILE, CORRUPT) if name in frame.columns]
    # All columns are read: Spark refuses to read the corrupt text alone.
    bad = frame.where(F.col(CORRUPT).isNotNull() & ~F.trim(CORRUPT).isin(*_NOTHING[spec.envelope == "debezium"]))
    table = bad.toArrow()
    if table.num_rows == 0:
        return frame.drop(CORRUPT), ""
    files = table[FILE].to_pylist() if FILE in names else [spec.path] * table.num_rows
    records = table[CORRUPT].to_pylist()
    if spec.malformed == "error":
        shown = "\n".join(
            f"    {file}: {record[:_WIDTH]}" for file, record in list(zip(files, records, strict=True))[:_SHOWN]
        )
        raise SourceError(
            f"source {spec.name}: {table.num_rows} record(s) do not fit its columns:\n{shown}",
            "Correct them, or set `malformed: set_aside` to put such records into a table of their own.",
        )
    _set_aside(place, spec, files, records, t)
    note = f"{table.num_rows} malformed record(s) set aside in {spec.name}__malformed"
    return frame.where(F.col(CORRUPT).isNull()).drop(CORRUPT), note


def _set_aside(place: Place, spec: SourceSpec, files: list[str | None], records: list[str], t: Time) -> None:
    """Adds them to the collection ``<source>__malformed``; a run that is repeated at the same time adds them once."""
    beside = place.storage.collection(f"{spec.name}__malformed")
    log = beside.create(_SET_ASIDE)
    count = len(records)
    table = pa.table(
        {
            "file": pa.array(files, pa.string()),
            "record": pa.array(records, pa.string()),
            "dd_time": pa.array([t] * count, pa.int64()),
            "dd_diff": pa.array([1] * count, pa.int64()),
        }
    )
    added = write_arrow(place.storage, beside.trace_uri, table, _SET_ASIDE)
    repeated = tuple(file for file in log.files if file.first >= t)
    manifest = beside.write_manifest({"kind": "malformed", "schema": Schema(_SET_ASIDE.columns[:2]).to_json()})
    log.commit(Commit(add=(added,), remove=repeated, upper=max(t + 1, log.frontiers.upper), manifest=manifest))
