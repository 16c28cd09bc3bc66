"""A Delta table as a source: its log tells which rows' files came and went between two versions.

Only those are read, and of a file whose deletion vector changed only the rows that were marked or are not any more.
Commits that say of themselves that they change no data (compaction, sorting) cost nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs
from pyspark.sql.types import StructType

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.lake.delta_log import DeltaLog, Head, LoggedFile, VersionGone, net
from dbt_incremental_dd.lake.positions import inline_vector, read_vector, vector_file
from dbt_incremental_dd.sources.connectors.lake.data_files import (
    Part,
    compared_parts,
    filesystem_of,
    missing,
    read_parts,
)
from dbt_incremental_dd.sources.connectors.lake.delta_schema import (
    columns_of,
    is_by_id,
    physical_columns,
    physical_ids,
    physical_partitions,
)
from dbt_incremental_dd.sources.connectors.lake.following import (
    FullScanRequired,
    differing,
    whole_or_error,
)
from dbt_incremental_dd.sources.definition import require_columns
from dbt_incremental_dd.sources.envelopes.reserved import refuse_reserved
from dbt_incremental_dd.sources.paths import poll_interval, require_format, require_path
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.setting import path, setting
from dbt_incremental_dd.sources.spec import FILE_FORMATS, SourceSpec, one_of
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = ["SPEC", "change_token", "changes", "poll", "poll_interval"]

_READ = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
"""Features of tables that are understood here; those of writers alone change nothing for who reads."""


@dataclass(frozen=True, kw_only=True)
class DeltaSpec(SourceSpec):
    """``path``: the table's folder, absolute or a URI."""

    connector: ClassVar[str] = "delta"
    reads: ClassVar[str] = "a Delta table"

    path: str | None = setting(path)
    format: str | None = setting(one_of(*FILE_FORMATS), "delta")

    @property
    def location(self) -> str | None:
        return self.path

    def check(self) -> None:
        require_path(self)
        require_format(self)


SPEC = DeltaSpec


def change_token(storage: Storage, spec: DeltaSpec) -> Hashable:
    """The log's last entry."""
    filesystem, path = storage.filesystem(str(spec.path))
    entries = filesystem.get_file_info(pafs.FileSelector(f"{path}/_delta_log"))
    found = ((e.base_name, e.size, e.mtime_ns) for e in entries if e.base_name.endswith(".json"))
    return max(found, default="")


def poll(request: PollRequest[DeltaSpec]) -> PollResult | None:
    """Records added and removed since the version taken in last; None where nothing is new."""
    return changes(request, str(request.spec.path))


def changes(request: PollRequest[SourceSpec], uri: str) -> PollResult | None:
    """As ``poll``, of the table in a folder."""
    try:
        return _Table(request, uri).result()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise SourceError(
            f"source {request.spec.name}: the Delta table at {uri} cannot be read: {error}",
            "Check that its files are there, and that they may be read.",
        ) from error


class _Table:
    """The table as one poll finds it."""

    def __init__(self, request: PollRequest[SourceSpec], uri: str) -> None:
        self._request = request
        self._uri = uri.rstrip("/")
        self._filesystem, self._folder = filesystem_of(request.storage, self._uri)
        self._log = DeltaLog(self._filesystem, self._folder)
        self._name = request.spec.name
        self._partitions: tuple[str, ...] = ()
        if self._log.version < 0:
            raise SourceError(f"source {self._name}: there is no Delta table at {uri}", "Check `path`.")

    def result(self) -> PollResult | None:
        """What is new."""
        request, log = self._request, self._log
        mark, before = log.mark(log.version), request.progress
        if request.stored is not None and before.get("version") == log.version and before.get("mark") == mark:
            return None
        if request.stored is None:
            return self._whole(mark)
        try:
            return self._since(before, mark)
        except (FullScanRequired, VersionGone, FileNotFoundError) as reason:
            return self._whole(mark, whole_or_error(request.spec, str(reason)))

    def _whole(self, mark: str | None, *notes: str) -> PollResult:
        """All that is live."""
        head, live = self._log.snapshot()
        schema, columns = self._columns(head)
        parts = [self._part(file, columns, None, self._vector(file)) for file in live]
        self._require_names(head, parts)
        records = read_parts(self._request.workspace, schema, parts)
        return PollResult(records, self._progress(head, mark), whole=bool(notes), notes=notes)

    def _since(self, before: Mapping[str, Any], mark: str | None) -> PollResult:
        """What commits after the version taken in last have done. Raises FullScanRequired where that cannot be told."""
        version = int(before["version"])
        if version > self._log.version or "mark" not in before or before["mark"] != self._log.mark(version):
            raise FullScanRequired(
                f"version {version} is not in its log any more, or it is another table in the same place"
            )
        found = dict(before["head"])

        def note(action: Mapping[str, Any]) -> None:
            found["metadata"] = action.get("metaData") or found["metadata"]
            found["protocol"] = action.get("protocol") or found["protocol"]

        counts = net(self._log.between(version, self._log.version), note)
        then, head = Head(**before["head"]), Head(**found)
        schema, columns = self._columns(head)
        self._refuse_moved(then, columns)
        if self._partitions and any(file.partition is None for file in counts):
            raise FullScanRequired("its log does not say in which partition a removed file was")
        came, went = self._parts(counts, columns)
        gone = missing(self._request.storage, went)
        if gone is not None:
            raise FullScanRequired(f"file {gone}, of which rows went, is not there any more")
        self._require_names(head, [*came, *went])
        came_rows, went_rows = compared_parts(self._request.workspace, schema, came, went)
        return PollResult(came_rows, self._progress(head, mark), removed=went_rows)

    def _columns(self, head: Head) -> tuple[Schema, StructType]:
        """The table's columns, and what files call them. Raises SourceError for tables that are not understood."""
        features = set(head.protocol.get("readerFeatures") or ())
        if features - _READ or int(head.protocol.get("minReaderVersion", 1)) > 3:
            raise SourceError(
                f"source {self._name}: the Delta table at {self._uri} uses {', '.join(sorted(features - _READ))}",
                "Register it in Spark's catalog, make a view of it, and read that with envelope snapshot.",
            )
        schema = columns_of(self._name, head.metadata)
        refuse_reserved(self._name, self._request.spec.settings, schema.names)
        require_columns(self._request, schema)
        self._partitions = physical_partitions(head.metadata)
        return schema, physical_columns(head.metadata)

    def _require_names(self, head: Head, parts: Sequence[Part]) -> None:
        """Raises SourceError where columns are found by numbers, and a file has them under other names than the log."""
        if not is_by_id(head.metadata):
            return
        wanted = physical_ids(head.metadata)
        for part in parts:
            filesystem, path = filesystem_of(self._request.storage, part.uri)
            for field in pq.read_schema(path, filesystem=filesystem):
                number = int((field.metadata or {}).get(b"PARQUET:field_id", -1))
                if wanted.get(number, field.name) != field.name:
                    raise SourceError(
                        f"source {self._name}: {part.uri} calls column {wanted[number]} {field.name}",
                        "Register the table in Spark's catalog, make a view of it, and read that.",
                    )

    def _refuse_moved(self, then: Head, columns: StructType) -> None:
        """Raises FullScanRequired where a column is not that of the same name any more, without a change of files."""
        now = {field.name: field.dataType for field in columns}
        if any(now.get(field.name) != field.dataType for field in physical_columns(then.metadata)):
            raise FullScanRequired("a column was dropped and another one of its name added")

    def _parts(self, counts: Mapping[LoggedFile, int], columns: StructType) -> tuple[list[Part], list[Part]]:
        """What came and what went; of a file that did both with different vectors, the rows in which these differ."""
        came: list[Part] = []
        went: list[Part] = []
        by_path: dict[str, tuple[list[LoggedFile], list[LoggedFile]]] = {}
        for file, count in counts.items():
            by_path.setdefault(file.path, ([], []))[count < 0].extend([file] * abs(count))
        for plus, minus in by_path.values():
            found = differing(list(map(self._vector, plus)), list(map(self._vector, minus)))
            file = (plus or minus)[0]
            for parts, rows in zip((came, went), found, strict=True):
                parts += [self._part(file, columns, only, but) for only, but in rows]
        return came, went

    def _part(self, file: LoggedFile, columns: StructType, only: BitMap64 | None, but: BitMap64 | None) -> Part:
        uri = file.path if "://" in file.path or file.path.startswith(("/", "file:")) else f"{self._uri}/{file.path}"
        constants = {**dict.fromkeys(self._partitions), **dict(file.partition or ())}
        return Part(uri, file.rows, columns, constants=tuple(constants.items()), only=only, but=but)

    def _vector(self, file: LoggedFile) -> BitMap64 | None:
        """The positions of the file's deleted rows, if any."""
        vector = dict(file.vector)
        if not vector:
            return None
        kind, text = vector["storageType"], vector["pathOrInlineDv"]
        if kind == "i":
            return inline_vector(text, int(vector["sizeInBytes"]))
        filesystem, path = self._filesystem, f"{self._folder}/{vector_file(text)}" if kind == "u" else text
        if kind == "p":
            filesystem, path = filesystem_of(self._request.storage, text)
        return read_vector(filesystem, path, int(vector["offset"] or 0))

    def _progress(self, head: Head, mark: str | None) -> dict[str, Any]:
        kept = ("id", "schemaString", "partitionColumns", "configuration")
        metadata = {key: head.metadata.get(key) for key in kept}
        metadata["configuration"] = dict(head.metadata.get("configuration") or {})
        protocol = {key: head.protocol.get(key) for key in ("minReaderVersion", "readerFeatures")}
        return {"version": self._log.version, "mark": mark, "head": {"metadata": metadata, "protocol": protocol}}
