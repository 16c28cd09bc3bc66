"""A relation of the catalog as a source: seeds, tables, views, models of other materializations.

A table whose format keeps a history of changes (Delta, Iceberg) is read by that. Of others the data files (names,
sizes, times) tell whether it can have changed at all, and in which partitions; a view is always read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from urllib.parse import unquote, urlparse

from pyarrow.fs import FileType
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import SourceError, UnsupportedSQL
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.sources.catalog_table import Described, described, folder_of, is_as_read
from dbt_incremental_dd.sources.connectors.catalog_spec import CatalogSpec, no_interval, no_token
from dbt_incremental_dd.sources.connectors.lake import delta, iceberg
from dbt_incremental_dd.sources.connectors.table.parquet_files import read_small
from dbt_incremental_dd.sources.connectors.table.partitions import changed_partitions
from dbt_incremental_dd.sources.definition import require_columns
from dbt_incremental_dd.sources.envelopes.reserved import refuse_reserved
from dbt_incremental_dd.sources.partitions import within
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.records import in_spark, on_driver
from dbt_incremental_dd.sources.staged_table import LoadedTable, staged_rows, staged_table
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import quoted, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True)
class TableSpec(CatalogSpec):
    """A relation of any kind, by its name."""

    connector: ClassVar[str] = "table"


SPEC, change_token, poll_interval = TableSpec, no_token, no_interval


def poll(request: PollRequest[TableSpec]) -> PollResult | None:
    """The relation's records: all of them, or for ``append`` those of new files; None where it has not changed."""
    storage, spec, progress, stored = request.storage, request.spec, request.progress, request.stored
    staged = staged_table(request.workspace.session, storage, spec.relation) if spec.envelope.is_whole else None
    if staged is not None and staged.rows <= request.workspace.thresholds.taken_rows:
        return _staged(request, staged)
    if stored is not None and is_as_read(request.workspace.session, storage, spec.relation, progress):
        return None
    spark = request.spark
    told = described(spark, spec.relation)
    request.workspace.session.memory.keep_table(spec.relation)
    if told.provider == "delta" and told.location is not None:
        return delta.changes(request, told.location)
    if told.provider == "iceberg":
        return iceberg.poll(request)
    frame = _open(spark, spec)
    try:
        columns = schema_of(frame.schema)
    except UnsupportedSQL as error:
        remedy = "Make a view that casts it, and read that."
        raise SourceError(f"source {spec.name}: {error.construct}", remedy) from error
    _require_columns(request, columns)
    files = _data_files(storage, frame) if told.kind in ("MANAGED", "EXTERNAL") else None
    mark = None if files is None else {name: file.state for name, file in files.items()}
    has_same_columns = stored is not None and stored == columns
    if mark is not None and mark == progress.get("files") and has_same_columns:
        return None
    if spec.envelope.is_whole:
        others = (
            changed_partitions(spark, spec.relation, told, columns, found=mark or {}, seen=progress.get("files") or {})
            if has_same_columns
            else None
        )
        fresh = frame if others is None else frame.where(within(others, columns))
        found = None if others is None else tuple(others)
        records = _few(request, told, frame, columns, files or {}) if others is None else None
        records = records or in_spark(request.workspace, fresh, _LARGE)
        return PollResult(records, {"files": mark, "folder": folder_of(told)}, whole=True, within=found)
    return _appended(request, told, frame, files, has_same_columns=has_same_columns)


def _staged(request: PollRequest[TableSpec], staged: LoadedTable) -> PollResult | None:
    """All records of a table whose rows are stored already; None where they are those that were read last."""
    if request.stored is not None and request.progress.get("staged") == staged.staged:
        return None
    _require_columns(request, staged.columns)
    records = on_driver(request.workspace, staged_rows(request.storage, staged), staged.columns)
    return PollResult(records, {"staged": staged.staged}, whole=True)


def _require_columns(request: PollRequest[TableSpec], columns: Schema) -> None:
    """Raises what ``require_columns`` raises, and SourceError for reserved names."""
    refuse_reserved(request.spec.name, request.spec.settings, columns.names)
    require_columns(request, columns)


def _few(
    request: PollRequest[TableSpec], told: Described, frame: DataFrame, columns: Schema, files: Mapping[str, _DataFile]
) -> Relation | None:
    """All records of a small table, read on the driver; None where Spark has to read them."""
    if told.provider != "parquet" or told.partitioned_by or not files:
        return None
    if sum(file.state[0] for file in files.values()) > _SMALL_BYTES:
        return None
    filesystem, _ = request.storage.filesystem(next(iter(files)))
    most = request.workspace.thresholds.taken_rows
    table = read_small(filesystem, list(files), columns, frame.schema, most)
    return None if table is None else on_driver(request.workspace, table, columns)


_SMALL_BYTES = 64 << 20
"""Of a table that is read on the driver."""
_SLASHES = "^([^/:]+:)/+"
_LARGE = 1 << 40
"""More records than anybody brings to the driver: how many there are is not known."""


def _open(spark: SparkSession, spec: TableSpec) -> DataFrame:
    try:
        # A session remembers a table's files, and others may have written some since.
        spark.catalog.refreshTable(spec.relation)
        frame = spark.table(spec.relation)
        frame.schema  # noqa: B018 - under Spark Connect a missing table shows only when it is analysed
        return frame
    except AnalysisException as error:
        raise SourceError(
            f"source {spec.name}: relation {spec.relation} cannot be read: {str(error).splitlines()[0]}",
            "Create it, give the source a `path`, or check its name.",
        ) from error


class _DataFile(NamedTuple):
    """A file of a table: its URI as Spark says it, and its size in bytes and time in ns."""

    uri: str
    state: list[int]


def _data_files(storage: Storage, frame: DataFrame) -> dict[str, _DataFile] | None:
    """The data files of a table by their paths; None where files cannot be told: of a table that Hive's own readers
    read Spark says the folder alone."""
    found = {}
    for uri in frame.inputFiles():
        parsed = urlparse(uri)
        path = unquote(parsed.path) if parsed.scheme in ("", "file") else uri
        filesystem, name = storage.filesystem(path)
        info = filesystem.get_file_info(name)
        if info.type != FileType.File:
            return None
        found[name] = _DataFile(uri, [info.size or 0, info.mtime_ns or 0])
    return found


def _appended(
    request: PollRequest[TableSpec],
    told: Described,
    frame: DataFrame,
    files: dict[str, _DataFile] | None,
    *,
    has_same_columns: bool,
) -> PollResult | None:
    """Records of files that were not there before; none of them where there are only new columns."""
    spec = request.spec
    if files is None:
        raise SourceError(
            f"source {spec.name}: {spec.relation} is a view, of which new records cannot be told",
            "Use envelope snapshot, or read the table beneath it.",
        )
    mark = {name: file.state for name, file in files.items()}
    seen = request.progress.get("files") or {}
    if any(mark.get(name) != state for name, state in seen.items()):
        raise SourceError(
            f"source {spec.name}: files of {spec.relation} were rewritten or removed",
            f"Envelope {spec.envelope} needs a table that is only added to. Use envelope snapshot.",
        )
    fresh = [file.uri for name, file in files.items() if name not in seen]
    if not fresh and has_same_columns:
        return None
    # A row's file is named by the same URI, but for the number of slashes after the scheme.
    path = F.regexp_replace("_metadata.file_path", _SLASHES, "$1/")
    new = frame.where(path.isin([re.sub(_SLASHES, r"\1/", uri) for uri in fresh])) if seen else frame
    records = in_spark(request.workspace, new.select(*map(quoted, frame.columns)), _LARGE)
    return PollResult(records, {"files": mark, "folder": folder_of(told)})
