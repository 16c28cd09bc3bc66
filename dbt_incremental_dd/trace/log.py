"""The log of one trace: which files hold its updates, and its frontiers, committed together.

A trace is a Delta table. Its frontiers are Delta application transactions ("txn" actions of the Delta protocol), so
a batch becomes visible together with the frontier that covers it, or not at all. Two writers that move the same
frontier conflict, and the second gets CommitConflict: compare-and-swap.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.errors import CommitConflict, StateError
from dbt_incremental_dd.core.frontier import Frontiers
from dbt_incremental_dd.core.schema import DIFF, TIME, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES

UPPER, SINCE, MANIFEST = "dd:upper", "dd:since", "dd:manifest"

_REBUILD = "Rebuild it with `dbt run --full-refresh --select` and its name."


@dataclass(frozen=True)
class Commit:
    """What one commit does. ``None`` leaves a frontier or the manifest as it is.

    ``replace_all`` drops every file and takes ``schema``, in the same commit.
    """

    add: tuple[DataFile, ...] = ()
    remove: tuple[DataFile, ...] = ()
    upper: Time | None = None
    since: Time | None = None
    manifest: int | None = None
    schema: Schema | None = None
    replace_all: bool = False
    changes_data: bool = True


_SETTINGS = {
    "delta.checkpointInterval": "50",
    # Bounds of all columns; those of `dd_time`, which is among the last, are what reads begin with.
    "delta.dataSkippingNumIndexedCols": "-1",
}


class Log:
    """One version of a trace's log, as of when it was loaded. Commits go onto this version only."""

    def __init__(self, name: str, uri: str, table: DeltaTable, options: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.uri = uri
        self._options = options
        self._table = table
        self._schema = Schema.from_json(table.schema().to_json())
        self._files: tuple[DataFile, ...] | None = None

    @staticmethod
    def load(name: str, uri: str, storage_options: Mapping[str, str] | None = None) -> Log | None:
        """The log's newest version; None where there is no such trace. Raises StateError where it is damaged."""
        try:
            return Log(name, uri, DeltaTable(uri, storage_options=dict(storage_options or {})), storage_options)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError, ValueError) as error:
            raise StateError(
                f"the log of {name} at {uri} cannot be read: {error}",
                _REBUILD,
            ) from error

    @staticmethod
    def load_version(name: str, uri: str, version: int, storage_options: Mapping[str, str] | None = None) -> Log:
        """The log as of an earlier version. Raises StateError where its entries are gone."""
        try:
            table = DeltaTable(uri, version=version, storage_options=dict(storage_options or {}))
            return Log(name, uri, table, storage_options)
        except (DeltaError, OSError, ValueError) as error:
            raise StateError(f"version {version} of {name} is gone from {uri}: {error}", _REBUILD) from error

    @staticmethod
    def create(name: str, uri: str, schema: Schema, storage_options: Mapping[str, str] | None = None) -> Log:
        """A new, empty trace of ``schema`` (which includes ``dd_time`` and the diff columns)."""
        start = [Transaction(UPPER, 0), Transaction(SINCE, 0)]
        try:
            create_table_with_add_actions(
                uri,
                DeltaSchema.from_json(schema.to_json()),
                [],
                configuration=_SETTINGS,
                storage_options=dict(storage_options or {}),
                commit_properties=CommitProperties(app_transactions=start),
            )
        except (DeltaError, OSError) as error:
            existing = Log.load(name, uri, storage_options)
            if existing is not None:
                return existing
            raise StateError(
                f"{name} cannot be stored at {uri}: {error}", "Check that `state_root` exists and can be written."
            ) from error
        made = Log.load(name, uri, storage_options)
        if made is None:
            raise StateError(f"{name} was stored at {uri} but cannot be found there", "Check `state_root`.")
        return made

    @property
    def version(self) -> int:
        """The Delta table's version."""
        return int(self._table.version())

    @property
    def schema(self) -> Schema:
        """All stored columns, ``dd_time`` and diffs included."""
        return self._schema

    @property
    def frontiers(self) -> Frontiers:
        """``since`` and ``upper`` as of this version."""
        return Frontiers(since=self._transaction(SINCE) or 0, upper=self._transaction(UPPER) or 0)

    @property
    def manifest(self) -> int | None:
        """The number of the manifest that belongs to this version."""
        return self._transaction(MANIFEST)

    def _transaction(self, name: str) -> int | None:
        version = self._table.transaction_version(name)
        return None if version is None else int(version)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All live files, oldest updates first."""
        if self._files is None:
            table = pa.table(self._table.get_add_actions(flatten=True))
            rows = (_data_file(row, self._schema) for row in table.to_pylist())
            self._files = tuple(sorted(rows, key=lambda file: (file.first, file.last, file.path)))
        return self._files

    def commit(self, commit: Commit) -> Log:
        """The log with ``commit`` on top. Raises CommitConflict where another writer came first.

        ``upper`` and ``since`` never go back (FrontierError), except by ``replace_all``.
        """
        schema = commit.schema or self._schema
        if commit.upper is not None and not commit.replace_all:
            self.frontiers.require_advance(commit.upper, self.name)
        self._add_columns(schema, commit.replace_all)
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [_add(file, schema, commit.changes_data, now) for file in commit.add]
        if not commit.replace_all:
            actions += [
                RemoveAction(path=file.path, data_change=commit.changes_data, deletion_timestamp=now, size=file.bytes)
                for file in commit.remove
            ]
        try:
            self._table.create_write_transaction(
                actions,
                "overwrite" if commit.replace_all else "append",
                DeltaSchema.from_json((schema if commit.replace_all else self._schema).to_json()),
                commit_properties=CommitProperties(app_transactions=_transactions(commit), max_commit_retries=15),
            )
        except CommitFailedError as error:
            raise CommitConflict(
                f"another writer moved {self.name} first ({error})",
                "Nothing of this commit is visible. Run again; do not run one model from two places at once.",
            ) from error
        except (DeltaError, OSError) as error:
            raise StateError(f"{self.name} at {self.uri} cannot be written: {error}", "Check `state_root`.") from error
        made = Log.load(self.name, self.uri, self._options)
        if made is None:
            raise StateError(f"{self.name} is gone from {self.uri}", "Check `state_root`.")
        return made

    def _add_columns(self, schema: Schema, replace_all: bool) -> None:
        """Columns that are new appear as NULL in older files; a commit of its own, harmless without the next."""
        present = {column.name for column in self._schema}
        new = [column for column in schema if column.name not in present]
        if replace_all or not new:
            return
        wanted = {field.name: field for field in DeltaSchema.from_json(schema.to_json()).fields}
        self._table.alter.add_columns([wanted[column.name] for column in new])
        self._table.update_incremental()
        self._schema = Schema.from_json(self._table.schema().to_json())

    def vacuum(self, older_than_hours: int = 24) -> list[str]:
        """Deletes files that no version needs any more; returns their paths."""
        return list(self._table.vacuum(older_than_hours, dry_run=False, enforce_retention_duration=False))


def _transactions(commit: Commit) -> list[Transaction]:
    wanted = ((UPPER, commit.upper), (SINCE, commit.since), (MANIFEST, commit.manifest))
    return [Transaction(name, value) for name, value in wanted if value is not None]


def _add(file: DataFile, schema: Schema, changes_data: bool, now: int) -> AddAction:
    lows: dict[str, Any] = {TIME: file.first, DIFF: file.min_diff}
    highs: dict[str, Any] = {TIME: file.last, DIFF: file.max_diff}
    for name, (low, high) in file.bounds.items():
        lows[name], highs[name] = _json_bound(low), _json_bound(high)
    stats = {"numRecords": file.rows, "minValues": lows, "maxValues": highs, "nullCount": dict.fromkeys(lows, 0)}
    return AddAction(
        path=file.path,
        size=file.bytes,
        partition_values={},
        modification_time=now,
        data_change=changes_data,
        stats=json.dumps(stats),
    )


def _json_bound(value: Any) -> Any:
    return value if isinstance(value, int | str) else value.isoformat()


def _data_file(row: Mapping[str, Any], schema: Schema) -> DataFile:
    names = [c.name for c in schema if c.type in BOUNDED_TYPES and c.name not in (TIME, DIFF)]
    bounds = {n: (row[f"min.{n}"], row[f"max.{n}"]) for n in names if row.get(f"min.{n}") is not None}
    return DataFile(
        path=row["path"],
        rows=row["num_records"],
        bytes=row["size_bytes"],
        first=row[f"min.{TIME}"],
        last=row[f"max.{TIME}"],
        min_diff=row[f"min.{DIFF}"],
        max_diff=row[f"max.{DIFF}"],
        bounds=bounds,
    )


def total_rows(files: Iterable[DataFile]) -> int:
    """How many updates the files hold."""
    return sum(file.rows for file in files)
