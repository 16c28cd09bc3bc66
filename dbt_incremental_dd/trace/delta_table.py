"""One version of a trace's Delta table as delta-rs opens it, for what delta-rs has to write: commits on top of other
writers' ones, columns, and checkpoints."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError

from dbt_incremental_dd.core.errors import CommitConflict, StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.storage import uploads
from dbt_incremental_dd.trace.commit import Action, Commit, properties


class TableVersion:
    """Opened when it is needed. Thread-safe.

    What it commits is returned as the table, which is not updated to the commit yet.
    """

    def __init__(
        self, name: str, uri: str, version: int, options: Mapping[str, str], table: DeltaTable | None = None
    ) -> None:
        """``table``: the table at this version, if it is open."""
        self._name = name
        self._uri = uri
        self._version = version
        self._options = options
        self._table = table
        self._lock = threading.Lock()

    def commit(self, commit: Commit, schema: Schema, actions: Sequence[Action]) -> DeltaTable:
        """Commits on top of other writers' commits. ``schema``: the columns after it. Raises CommitConflict if those
        commits conflict, StateError if it cannot be written."""
        with self._lock:
            table = self._open()
            try:
                table.create_write_transaction(
                    list(actions),
                    "overwrite" if commit.replace_all else "append",
                    DeltaSchema.from_json(schema.to_json()),
                    commit_properties=properties(commit, None if commit.replace_all else actions),
                )
            except CommitFailedError as error:
                raise conflict(self._name, error) from error
            except (DeltaError, OSError) as error:
                what = f"{self._name} at {self._uri} cannot be written: {error}"
                raise StateError(what, "Check `state_root`.") from error
            self._table = None  # it is another version from now on
        return table

    def add_columns(self, names: Sequence[str], schema: Schema) -> DeltaTable:
        """Commits new columns, which are NULL in older files. ``schema``: has them. Raises CommitConflict if another
        writer came first."""
        fields = {field.name: field for field in DeltaSchema.from_json(schema.to_json()).fields}
        uploads.settle(self._uri)
        table = self._opened()
        reached("columns: before")
        try:
            table.alter.add_columns([fields[name] for name in names])
        except CommitFailedError as error:
            raise conflict(self._name, error) from error
        reached("columns: added")
        return table

    def checkpoint(self) -> None:
        """Writes a checkpoint of this version."""
        with self._lock:
            self._open().create_checkpoint()

    def _open(self) -> DeltaTable:
        """The table at this version, even if there are later ones."""
        if self._table is None:
            uploads.settle(self._uri)
            try:
                self._table = self._opened()
            except (DeltaError, OSError) as error:
                raise conflict(self._name, error) from error
        return self._table

    def _opened(self) -> DeltaTable:
        return DeltaTable(self._uri, version=self._version, storage_options=dict(self._options))


def conflict(name: str, reason: object) -> CommitConflict:
    """The error for a commit that another writer's one has come before."""
    return CommitConflict(
        f"another writer moved {name} first ({reason})",
        "Nothing of this commit is visible. Run again; do not run one model from two places at once.",
    )
