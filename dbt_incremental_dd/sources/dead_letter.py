"""Records that do not fit the source's columns: an error, or set aside where they can be queried."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.manifest import Manifest
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.core.types import STRING
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.records import CORRUPT, FILE, localized, some
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.write import write_arrow

_NOTHING = {False: ("",), True: ("", "null")}
"""Texts of records that say nothing, by whether that is so of NULL."""
_SHOWN = 3
_WIDTH = 120
_SET_ASIDE = Schema((Column("file", STRING), Column("record", STRING), TIME_COLUMN, DIFF_COLUMN))


def good_records(place: CollectionStore, spec: SourceSpec, result: PollResult, t: Time) -> tuple[Relation, str]:
    """The records that fit, and a note on those that do not. Raises SourceError where these are not to be set aside."""
    if CORRUPT not in result.records.names:
        return result.records, ""
    records = localized(result.records)
    good = records.filter(Expr(f"{CORRUPT} IS NULL")).columns([n for n in records.names if n not in (CORRUPT, DIFF)])
    table = _malformed(records, _NOTHING[spec.envelope.ignores_nulls])
    if table is not None and table.num_rows == 0:
        return good, ""
    most = records.workspace.thresholds.malformed_rows
    if table is None or table.num_rows > most:
        raise SourceError(
            f"source {spec.name}: more than {most:,} records do not fit its columns",
            "Check its format and its columns: so many are not set aside.",
        )
    files = table[FILE].to_pylist() if FILE in table.column_names else [spec.location] * table.num_rows
    texts = _readable(table[CORRUPT]).to_pylist()
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


def forget(place: CollectionStore, spec: SourceSpec) -> None:
    """Empties what was set aside: the source is taken in anew, and its records are looked through once more."""
    log = place.storage.collection(f"{spec.name}__malformed").log()
    if log is not None and log.files:
        log.commit(Commit(remove=log.files))


def _malformed(records: Relation, nothing: tuple[str, ...]) -> pa.Table | None:
    """The rows that do not fit and say something, with all columns: Spark refuses to read the corrupt text alone. None
    where they are more than the driver holds."""
    found = records.filter(Expr(f"{CORRUPT} IS NOT NULL"))
    if not found.is_local:
        words = ", ".join(f"'{text}'" for text in nothing)
        found = found.filter(Expr(f"trim({CORRUPT}) NOT IN ({words})"))
    table = some(found, records.workspace.thresholds.malformed_rows + 1)
    if table is None:
        return None
    texts = pc.utf8_trim_whitespace(_readable(table[CORRUPT]))
    return table.filter(pc.invert(pc.fill_null(pc.is_in(texts, pa.array(nothing)), False)))


def _readable(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The records as text, whatever their bytes are."""
    if texts.null_count == len(texts):
        return texts
    decoded = [None if one is None else one.decode(errors="replace") for one in texts.cast(pa.binary()).to_pylist()]
    return pa.chunked_array([pa.array(decoded, pa.string())])


def _set_aside(place: CollectionStore, spec: SourceSpec, files: list[str | None], records: list[str], t: Time) -> None:
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
