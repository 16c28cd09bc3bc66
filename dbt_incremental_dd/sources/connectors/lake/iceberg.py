"""An Iceberg table of the catalog as a source: what changed is told by the metadata of two snapshots.

Data files that came or went are read, and of files that stayed the rows that were marked as deleted since. Snapshots
that say of themselves that they only replaced files (compaction, sorting) cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import SourceError, UnsupportedSQL
from dbt_incremental_dd.lake.positions import positions
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.sources.connectors.catalog_spec import CatalogSpec, no_interval, no_token
from dbt_incremental_dd.sources.connectors.lake.data_files import Part, compared_parts, filesystem_of, missing
from dbt_incremental_dd.sources.connectors.lake.following import (
    FullScanRequired,
    differing,
    whole_or_error,
)
from dbt_incremental_dd.sources.connectors.lake.iceberg_metadata import Deletes, File, Metadata, Positions
from dbt_incremental_dd.sources.connectors.lake.iceberg_schema import columns_in, numbers
from dbt_incremental_dd.sources.definition import require_columns
from dbt_incremental_dd.sources.envelopes.reserved import refuse_reserved
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.records import in_spark, no_records
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.spark_reader import quoted, schema_of, struct

if TYPE_CHECKING:
    from pyroaring import BitMap64
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class IcebergSpec(CatalogSpec):
    """An Iceberg table, by its name."""

    connector: ClassVar[str] = "iceberg"


SPEC, change_token, poll_interval = IcebergSpec, no_token, no_interval


def poll(request: PollRequest[SourceSpec]) -> PollResult | None:
    """Records added and removed since the snapshot taken in last; None where nothing is new."""
    spark, spec = request.spark, request.spec
    spark.catalog.refreshTable(spec.relation)
    newest = spark.table(f"{spec.relation}.metadata_log_entries").tail(1)
    return _Table(request, Metadata(request.storage, newest[0]["file"])).result()


class _Table:
    """The table as one poll finds it."""

    def __init__(self, request: PollRequest[SourceSpec], metadata: Metadata) -> None:
        self._request = request
        self._metadata = metadata
        self._positions = Positions(request.storage)
        try:
            self._schema = schema_of(request.spark.table(request.spec.relation).schema)
        except UnsupportedSQL as error:
            remedy = "Make a view that casts it, and read that."
            raise SourceError(f"source {request.spec.name}: {error.construct}", remedy) from error
        refuse_reserved(request.spec.name, request.spec.settings, self._schema.names)
        self._progress: dict[str, Any] = {
            "uuid": metadata.uuid,
            "snapshot": metadata.current,
            "numbers": dict(numbers(metadata.fields)),
        }

    def result(self) -> PollResult | None:
        """What is new."""
        request, before = self._request, self._request.progress
        if request.stored is None:
            return PollResult(self._all(), self._progress)
        require_columns(request, self._schema)
        if before == self._progress and request.stored == self._schema:
            return None
        try:
            came, went = self._since(before)
        except (FullScanRequired, OSError, ValueError, pa.ArrowException) as reason:
            return PollResult(
                self._all(), self._progress, whole=True, notes=(whole_or_error(request.spec, str(reason)),)
            )
        records, gone = compared_parts(request.workspace, self._schema, came, went)
        return PollResult(records, self._progress, removed=gone)

    def _all(self) -> Relation:
        """The current snapshot's records, as Iceberg's own reader has them."""
        request, snapshot = self._request, self._metadata.current
        if snapshot is None:
            return no_records(request.workspace, self._schema)
        frame = request.spark.sql(f"SELECT * FROM {request.spec.relation} VERSION AS OF {snapshot}")
        return in_spark(request.workspace, self._named(frame, snapshot), self._metadata.rows_of(snapshot))

    def _named(self, frame: DataFrame, snapshot: int) -> DataFrame:
        """A snapshot's columns as the table has them now: they may have come or changed their names since."""
        then = {int(field["id"]): field["name"] for field in self._metadata.fields_at(snapshot)}
        columns = []
        for field, own in zip(self._metadata.fields, struct(self._schema), strict=True):
            name = then.get(int(field["id"]))
            column = F.lit(None) if name is None else quoted(name)
            columns.append(column.cast(own.dataType).alias(own.name))
        return frame.select(*columns)

    def _since(self, before: Mapping[str, Any]) -> tuple[list[Part], list[Part]]:
        """What came and went since then. Raises FullScanRequired where that cannot be told."""
        if before.get("uuid") != self._metadata.uuid:
            raise FullScanRequired("it is another table of the same name")
        now = self._progress["numbers"]
        if any(now.get(name) != number for name, number in before["numbers"].items()):
            raise FullScanRequired("a column was dropped and another one of its name added")
        plus: dict[str, list[BitMap64]] = {}
        minus: dict[str, list[BitMap64]] = {}
        rows: dict[str, int] = {}
        for one, other in self._metadata.intervals(before["snapshot"], self._metadata.current):
            for file, then, later in self._changes(one, other):
                rows[file.path] = file.rows
                minus.setdefault(file.path, []).extend([] if then is None else [then])
                plus.setdefault(file.path, []).extend([] if later is None else [later])
        came: list[Part] = []
        went: list[Part] = []
        for path, count in rows.items():
            columns = None
            for parts, found in zip((came, went), differing(plus[path], minus[path]), strict=True):
                for only, but in found:
                    columns = columns or self._columns(path)
                    parts.append(Part(path, count, columns, constants=(), only=only, but=but))
        gone = missing(self._request.storage, [*came, *went])
        if gone is not None:
            raise FullScanRequired(f"file {gone} is not there any more")
        return came, went

    def _changes(self, one: int | None, other: int | None) -> list[tuple[File, BitMap64 | None, BitMap64 | None]]:
        """Data files, and their deleted positions in either snapshot; None where there is no such file."""
        before, after = self._metadata.files(one), self._metadata.files(other)
        deletes = self._metadata.deletes(one), self._metadata.deletes(other)
        touched = {path for changed in deletes[0] ^ deletes[1] for path in self._positions.of(changed)}
        touched = {path for path in touched if path in before and path in after} | (before.keys() ^ after.keys())
        return [
            (
                after.get(path) or before[path],
                self._deleted(before[path], deletes[0]) if path in before else None,
                self._deleted(after[path], deletes[1]) if path in after else None,
            )
            for path in sorted(touched)
        ]

    def _deleted(self, file: File, deletes: set[Deletes]) -> BitMap64:
        """The file's deleted positions."""
        found = positions()
        for one in deletes:
            if one.may_concern(file):
                found |= self._positions.of(one).get(file.path, positions())
        return found

    def _columns(self, path: str) -> Any:
        """What a data file calls the columns."""
        filesystem, name = filesystem_of(self._request.storage, path)
        schema = pq.read_schema(name, filesystem=filesystem)
        return columns_in(schema, self._metadata.fields, struct(self._schema))
