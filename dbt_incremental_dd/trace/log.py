"""The log of one trace: the files of its updates and its frontiers, committed together.

A trace is a Delta table. Its frontiers are Delta application transactions ("txn" actions of the Delta protocol), so a
batch becomes visible together with the frontier that covers it, or not at all. If two writers advance the same
frontier, the second gets CommitConflict: compare-and-swap.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import CommitConflict, DifferentialError, StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.frontier import Frontiers
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.parquet.page_index import SUFFIX
from dbt_incremental_dd.storage import durable, uploads
from dbt_incremental_dd.storage.uploads import later
from dbt_incremental_dd.storage.uris import is_remote
from dbt_incremental_dd.trace import entries
from dbt_incremental_dd.trace.actions import in_order, live_files
from dbt_incremental_dd.trace.commit import (
    MANIFEST,
    SINCE,
    TRANSACTIONS,
    UPPER,
    Action,
    Commit,
    actions_of,
    properties,
    transactions,
)
from dbt_incremental_dd.trace.entry_reader import Entry
from dbt_incremental_dd.trace.entry_writer import entry_lines, write_entry
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.log_cache import Known
from dbt_incremental_dd.trace.log_snapshot import Snapshot, write_snapshot
from dbt_incremental_dd.trace.tiers import mergeable

_LOG = logging.getLogger(__name__)
INNER, ARRANGEMENT = "inner", "by."
"""The folder of a collection's states, and how the names of those begin that are arrangements."""
_CHECKPOINT = 50
"""Commits between two checkpoints."""


class Log:
    """One version of a trace's log, as of when it was loaded. Commits apply to this version only."""

    def __init__(
        self,
        name: str,
        uri: str,
        *,
        version: int,
        schema: Schema,
        files: tuple[DataFile, ...],
        moved: Mapping[str, int | None],
        options: Mapping[str, str] | None = None,
        copies: str | None = None,
        table: DeltaTable | None = None,
    ) -> None:
        """``moved``: the versions of its transactions; ``table``: the table at this version, if it is open. ``copies``:
        of a log in object storage the folder of this machine where what is known of it is noted."""
        self.name = name
        self.uri = uri
        self._options = options
        self._copies = copies
        self._table = table
        self._lock = threading.Lock()
        self.version = version
        """The Delta table's version."""
        self.schema = schema
        """All stored columns, ``dd_time`` and diffs included."""
        self._is_settled = False
        """Whether this process has synced its entry, or will do so with the collection's next commit."""
        self._on_its_way: Future[None] | None = None
        """Its entry, where this process has let it go to the store without waiting."""
        self._moved = moved
        self.frontiers = Frontiers(since=moved[SINCE] or 0, upper=moved[UPPER] or 0)
        """``since`` and ``upper`` as of this version."""
        self.manifest = moved[MANIFEST]
        """The number of the manifest that belongs to this version."""
        self.files = files
        """All live files, oldest updates first."""

    @staticmethod
    def of(name: str, uri: str, table: DeltaTable, options: Mapping[str, str] | None, copies: str | None = None) -> Log:
        """The log as a table has it."""
        schema = Schema.from_json(table.schema().to_json())
        moved = {name: _transaction(table, name) for name in TRANSACTIONS}
        files, version = live_files(table, schema), int(table.version())
        return Log(
            name,
            uri,
            version=version,
            schema=schema,
            files=files,
            moved=moved,
            options=options,
            copies=copies,
            table=table,
        )

    def summands(self, t: Time, first: Time | None = None) -> tuple[DataFile, ...]:
        """The files whose updates up to ``t`` add up to the contents as of ``t``, without those of which everything has
        been retracted by then, and the retractions. ``first``: an earlier time for which the same files are to do."""
        found, base = between(self.files, BEGINNING, t), self._base(t if first is None else first)
        return tuple(file for file in found if file.first > base or (file.first == base and not file.retracts_all))

    def _base(self, t: Time) -> Time:
        """The latest time up to ``t`` at which all that was there has been retracted."""
        return max((file.first for file in self.files if file.retracts_all and file.first <= t), default=BEGINNING)

    def mergeable(self) -> tuple[DataFile, ...]:
        """Small files that may be merged into one that keeps their times: those after ``since``, and after the time at
        which everything was retracted."""
        kept = max(self.frontiers.since, self._base(self.frontiers.last))
        return mergeable(file for file in self.files if file.first > kept)

    def advance(self, upper: Time) -> Log:
        """The log as it is, final up to ``upper``. In object storage the commit is on its way: whatever builds on it
        has to wait for it (``await_entry``), and so does whoever loads the log."""
        return self._commit(Commit(upper=upper), is_awaited=True)

    def commit(self, commit: Commit) -> Log:
        """Commits on top of this version, and returns the new log. Raises CommitConflict if another writer came first,
        StateError if it cannot be written.

        ``upper`` never goes back (FrontierError), except by ``replace_all``.
        """
        return self._commit(commit, is_awaited=self._is_inner and not commit.replace_all)

    def _commit(self, commit: Commit, *, is_awaited: bool) -> Log:
        """``is_awaited``: later, an operator's state by the collection's own commit."""
        schema = commit.schema or self.schema
        if commit.upper is not None and not commit.replace_all:
            self.frontiers.require_advance(commit.upper, self.name)
        wider = None if commit.replace_all else self._with_columns(schema)
        if wider is not None:
            return wider.commit(commit)
        actions = actions_of(commit, schema)
        durable.note(*(f"{self.uri}/{file.path}{suffix}" for file in commit.add for suffix in ("", SUFFIX)))
        self.settle()
        reached("commit: before")
        if is_awaited and is_remote(self.uri):
            return self._write_later(commit, actions)
        tag = self._write(commit, actions)
        table = self._write_by_delta_rs(commit, schema, actions) if tag is None else None
        reached("commit: done")
        return self._after(commit, table, tag)

    @property
    def _is_inner(self) -> bool:
        """Whether it is an operator's state, of which a version counts once a commit of the collection names it."""
        folder, name = os.path.split(self.uri)
        return os.path.basename(folder) == INNER and not name.startswith(ARRANGEMENT)

    def await_entry(self) -> None:
        """Waits until this version is in the store. What builds on it commits after it. Raises CommitConflict or
        StateError if it did not get there."""
        if self._on_its_way is not None:
            self._on_its_way.result()

    def _write_later(self, commit: Commit, actions: Sequence[Action]) -> Log:
        """The log after a commit that somebody waits for later."""
        made = self._made(commit, None)

        def write() -> None:
            tag = self._write(commit, actions)
            if tag is None:
                raise self._conflict(made.version)
            made.remember(tag)

        made._on_its_way = later(entries.entry_path(self.uri, made.version), write)
        return made

    def _write(self, commit: Commit, actions: Sequence[Action]) -> str | None:
        """Writes the entry without delta-rs, which takes thirty times as long, and returns its entity tag. None if that
        is not possible: after another writer's commit, or where a new schema or a checkpoint comes with it."""
        number = self.version + 1
        if commit.replace_all or (not is_remote(self.uri) and (number + 1) % _CHECKPOINT == 0):
            return None
        lines = entry_lines(actions, properties(commit, actions))
        try:
            return write_entry(self.uri, number, lines, self._options or {})
        except OSError as error:
            raise StateError(f"{self.name} at {self.uri} cannot be written: {error}", "Run again.") from error

    def _write_by_delta_rs(self, commit: Commit, schema: Schema, actions: Sequence[Action]) -> DeltaTable:
        """Commits on top of other writers' commits, if these do not conflict. The table is not updated yet."""
        with self._lock:
            table = self._open()
            try:
                table.create_write_transaction(
                    list(actions),
                    "overwrite" if commit.replace_all else "append",
                    DeltaSchema.from_json((schema if commit.replace_all else self.schema).to_json()),
                    commit_properties=properties(commit, None if commit.replace_all else actions),
                )
            except CommitFailedError as error:
                raise self._conflict(error) from error
            except (DeltaError, OSError) as error:
                what = f"{self.name} at {self.uri} cannot be written: {error}"
                raise StateError(what, "Check `state_root`.") from error
            self._table = None  # it is updated to the next log
        return table

    def _open(self) -> DeltaTable:
        """The table at this version, even if there are later ones."""
        if self._table is None:
            uploads.settle(self.uri)
            try:
                self._table = DeltaTable(self.uri, version=self.version, storage_options=dict(self._options or {}))
            except (DeltaError, OSError) as error:
                raise self._conflict(error) from error
        return self._table

    def holding(self, files: Iterable[DataFile], schema: Schema | None = None) -> Log:
        """The log after a commit that makes exactly these files live. ``schema``: with additional columns. Raises
        CommitConflict."""
        wanted = {file.path: file for file in files}
        live = {file.path for file in self.files}
        add = tuple(file for path, file in wanted.items() if path not in live)
        remove = tuple(file for file in self.files if file.path not in wanted)
        return self.commit(Commit(add=add, remove=remove, manifest=time.time_ns(), schema=schema))

    def _with_columns(self, schema: Schema) -> Log | None:
        """The log with new columns, which are NULL in older files; None if there are none.

        A commit of its own, harmless without the next one. Raises CommitConflict if another writer came first.
        """
        present = {column.name for column in self.schema}
        new = [column for column in schema if column.name not in present]
        if not new:
            return None
        wanted = {field.name: field for field in DeltaSchema.from_json(schema.to_json()).fields}
        uploads.settle(self.uri)
        table = DeltaTable(self.uri, version=self.version, storage_options=dict(self._options or {}))
        reached("columns: before")
        try:
            table.alter.add_columns([wanted[column.name] for column in new])
        except CommitFailedError as error:
            raise self._conflict(error) from error
        reached("columns: added")
        made = self._after(Commit(), table)
        if made.version != self.version + 1:
            raise self._conflict(made.version)
        return made

    def _after(self, commit: Commit, table: DeltaTable | None, tag: str | None = None) -> Log:
        """The log after a commit that was just made, and after those of others that came before it. ``table``: the one
        that delta-rs made it on, if it did; ``tag``: else the entity tag of its entry."""
        if table is not None:
            try:
                table.update_incremental()
            except (DeltaError, OSError) as error:
                raise StateError(f"{self.name} is gone from {self.uri}: {error}", "Check `state_root`.") from error
        if table is None or int(table.version()) == self.version + 1:
            made = self._made(commit, table)
        else:
            made = Log.of(self.name, self.uri, table, self._options, self._copies)
        made.settle(self.version + self._is_settled)
        made.remember(tag)
        return made

    def _made(self, commit: Commit, table: DeltaTable | None) -> Log:
        """The log of the next version."""
        gone = {file.path for file in (self.files if commit.replace_all else commit.remove)}
        schema = self.schema if table is None else Schema.from_json(table.schema().to_json())
        moved = {one.app_id: one.version for one in transactions(commit)}
        return self._next(commit.add, gone, moved, schema, table)

    def _next(
        self,
        added: Sequence[DataFile],
        removed: Set[str],
        moved: Mapping[str, int],
        schema: Schema,
        table: DeltaTable | None = None,
    ) -> Log:
        return Log(
            self.name,
            self.uri,
            version=self.version + 1,
            schema=schema,
            files=in_order((*(file for file in self.files if file.path not in removed), *added)),
            moved={**self._moved, **{name: version for name, version in moved.items() if name in TRANSACTIONS}},
            options=self._options,
            copies=self._copies,
            table=table,
        )

    def after(self, entry: Entry) -> Log:
        """The log with the next entry, which somebody has written."""
        return self._next(entry.added, entry.removed, entry.moved, self.schema)

    def remember(self, tag: str | None) -> None:
        """For whoever asks for it next. ``tag``: of its entry, where delta-rs has not written it."""
        commit = KNOWN.remember(self.uri, self._options or {}, self.version, self, tag)
        if self._copies is not None and isinstance(commit, str):
            known = Snapshot(self.name, self.uri, self.version, commit, self.schema, self._moved, self.files)
            _in_background().submit(write_snapshot, self._copies, known)
        if tag and (self.version + 1) % checkpoint_interval(self.uri) == 0:
            _in_background().submit(self._try_checkpoint)

    def _try_checkpoint(self) -> None:
        """In object storage a checkpoint takes many requests, for which no run waits. The log is right without it."""
        try:
            self.checkpoint()
        except CommitConflict:  # the log has gone on: whoever writes it makes the next one
            return
        except (DeltaError, OSError, DifferentialError) as error:
            _LOG.warning("no checkpoint of %s at %s: %s", self.name, self.uri, error)

    def settle(self, since: int | None = None) -> None:
        """Syncs what a commit needs and, with ``since``, the entries from that version on. Inner traces' entries are
        synced by the next commit of their collection."""
        if since is not None:
            durable.note(*(entries.entry_path(self.uri, number) for number in range(since, self.version + 1)))
            durable.note(*entries.checkpoint_paths(self.uri, self.version))
        folder = os.path.dirname(self.uri)
        if os.path.basename(folder) == INNER:
            if not self._is_inner:
                uploads.settle(self.uri)
            self._is_settled = since is not None or self._is_settled
            return
        try:
            uploads.settle(folder)
            durable.settle()
            if since is not None:
                self._is_settled = True
                entries.mark(self.uri, self.version, self.frontiers.last)
        except OSError as error:
            where = "" if is_remote(self.uri) else " to the disk"
            what = f"{self.name} at {self.uri} cannot be written{where}: {error}"
            raise StateError(what, f"Check the {'store' if is_remote(self.uri) else 'disk'}. Run again.") from error

    def _conflict(self, reason: object) -> CommitConflict:
        KNOWN.forget(self.uri)
        return CommitConflict(
            f"another writer moved {self.name} first ({reason})",
            "Nothing of this commit is visible. Run again; do not run one model from two places at once.",
        )

    def checkpoint(self) -> None:
        """Writes a checkpoint: one file from which the log up to this version can be loaded without its entries."""
        reached("checkpoint: before")
        with self._lock:
            self._open().create_checkpoint()
        self.settle(self.version)
        reached("checkpoint: written")


KNOWN: Known[Log] = Known()
"""The logs that this process has read."""


@cache
def _in_background() -> ThreadPoolExecutor:
    """Python waits for it at its end."""
    return ThreadPoolExecutor(2, "checkpoint")


if hasattr(os, "register_at_fork"):  # on Windows there is no fork
    os.register_at_fork(after_in_child=_in_background.cache_clear)


def checkpoint_interval(uri: str) -> int:
    """Commits between two checkpoints. Reading an entry since the last one takes several requests in object storage."""
    return 10 if is_remote(uri) else _CHECKPOINT


def _transaction(table: DeltaTable, name: str) -> int | None:
    version = table.transaction_version(name)
    return None if version is None else int(version)


def total_rows(files: Iterable[DataFile]) -> int:
    """The number of updates in the files."""
    return sum(file.rows for file in files)
