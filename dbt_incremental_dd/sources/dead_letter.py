"""Records that do not fit the source's columns: an error, or set aside where they can be queried."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.manifest import Manifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.core.types import STRING
from dbt_incremental_dd.sources.exchange import Records
from dbt_incremental_dd.sources.poll_result import CORRUPT, FILE, PollResult
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.layout import Place
from dbt_incremental_dd.trace.log import Commit
from dbt_incremental_dd.trace.write import write_arrow

_NOTHING = {False: ("",), True: ("", "null")}
"""Texts of records that say nothing, by whether that is so of NULL."""
_SHOWN = 3
_WIDTH = 120
_SET_ASIDE = Schema((Column("file", STRING), Column("record", STRING), TIME_COLUMN, DIFF_COLUMN))


def good_records(place: Place, spec: SourceSpec, result: PollResult, t: Time) -> tuple[Records, str]:
    """The records that fit, and a note on those that do not. Raises SourceError where these are not to be set aside."""
    if CORRUPT not in result.records.schema.names:
        return result.records, ""
    records = result.records.localized()
    good, table = _split(records, _NOTHING[spec.envelope.ignores_nulls])
    if table.num_rows == 0:
        return good, ""
    files = table[FILE].to_pylist() if FILE in table.column_names else [spec.location] * table.num_rows
    texts = _readable(table[CORRUPT]).to_pylist()
    if table.num_rows > limits.MALFORMED_ROWS:
        raise SourceError(
            f"source {spec.name}: more than {limits.MALFORMED_ROWS:,} records do not fit its columns",
            "Check its format and its columns: so many are not set aside.",
        )
    if spec.malformed == "error":
        shown = "\n".join(
            f"    {file}: {record[:_WIDTH]}" for file, record in list(zip(files, texts, strict=True))[:_SHOWN]
        )
        raise SourceError(
            f"source {spec.name}: {table.num_rows} record(s) do not fit its columns:\n{shown}",
            "Correct them, or set `malformed: set_aside` to put such records into a table of their own.",
        )
    _set_aside(place, spec, files, texts, t)
    note = f"{table.num_rows} malformed record(s) set aside in {spec.name}__malformed"
    return good, note


def _split(records: Records, nothing: tuple[str, ...]) -> tuple[Records, pa.Table]:
    """The records that fit, and the rows of those that do not."""
    kept = tuple(name for name in records.schema.names if name != CORRUPT)
    table = records.local
    if table is None:
        # All columns are read: Spark refuses to read the corrupt text alone.
        bad = records.frame.where(F.col(CORRUPT).isNotNull() & ~F.trim(CORRUPT).isin(*nothing))
        found = bad.limit(limits.MALFORMED_ROWS + 1).toArrow()
        return records.where(F.col(CORRUPT).isNull()).select(kept), found
    texts = pc.utf8_trim_whitespace(_readable(table[CORRUPT]))
    says = pc.invert(pc.fill_null(pc.is_in(texts, pa.array(nothing)), False))
    is_bad = pc.and_(pc.is_valid(texts), says)
    return records.replaced(table.filter(pc.is_null(texts))).select(kept), table.filter(is_bad)


def _readable(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The records as text, whatever their bytes are."""
    if texts.null_count == len(texts):
        return texts
    decoded = [None if one is None else one.decode(errors="replace") for one in texts.cast(pa.binary()).to_pylist()]
    return pa.chunked_array([pa.array(decoded, pa.string())])


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
    manifest = beside.write_manifest(Manifest(kind="malformed", schema=Schema(_SET_ASIDE.columns[:2])))
    log.commit(Commit(add=(added,), remove=repeated, upper=max(t + 1, log.frontiers.upper), manifest=manifest))
