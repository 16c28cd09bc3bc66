"""The log of one trace: the files of its updates and its frontiers, committed together.

A trace is a Delta table. Its frontiers are Delta application transactions ("txn" actions of the Delta protocol), so a
batch becomes visible together with the frontier that covers it, or not at all. If two writers advance the same
frontier, the second gets CommitConflict: compare-and-swap.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import CommitConflict, DifferentialError, StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.parquet.page_index import SUFFIX
from dbt_incremental_dd.storage import durable, uploads
from dbt_incremental_dd.storage.uploads import later
from dbt_incremental_dd.storage.uris import is_remote
from dbt_incremental_dd.trace import entries
from dbt_incremental_dd.trace.actions import in_order, live_files
from dbt_incremental_dd.trace.checkpoints import in_background, is_due
from dbt_incremental_dd.trace.commit import TRANSACTIONS, Action, Commit, actions_of, properties, transactions
from dbt_incremental_dd.trace.delta_table import TableVersion, conflict
from dbt_incremental_dd.trace.entry_reader import Entry
from dbt_incremental_dd.trace.entry_writer import entry_lines, write_entry
from dbt_incremental_dd.trace.log_cache import Known
from dbt_incremental_dd.trace.log_snapshot import Snapshot, write_snapshot
from dbt_incremental_dd.trace.log_version import LogVersion

_LOG = logging.getLogger(__name__)
INNER, ARRANGEMENT = "inner", "by."
"""The folder of a collection's states, and how the names of those begin that are arrangements."""


class Log(LogVersion):
    """A trace's log as of one version, to commit on top of that version only."""

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
        """``table``: the table at this version, if it is open. ``copies``: of a log in object storage the folder of
        this machine where what is known of it is noted."""
        super().__init__(name, uri, version=version, schema=schema, files=files, moved=moved)
        self._options = options or {}
        self._copies = copies
        self._table = TableVersion(name, uri, version, self._options, table)
        self._is_settled = False
        """Whether this process has synced its entry, or will do so with the collection's next commit."""
        self._on_its_way: Future[None] | None = None
        """Its entry, where this process has let it go to the store without waiting."""

    @staticmethod
    def of(name: str, uri: str, table: DeltaTable, options: Mapping[str, str] | None, copies: str | None = None) -> Log:
        """The log as a table has it."""
        schema = Schema.from_json(table.schema().to_json())
        return Log(
            name,
            uri,
            version=int(table.version()),
            schema=schema,
            files=live_files(table, schema),
            moved={name: _transaction(table, name) for name in TRANSACTIONS},
            options=options,
            copies=copies,
            table=table,
        )

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
        tag, table = self._write(commit, actions), None
        if tag is None:
            with self._forgotten_if_moved():
                table = self._table.commit(commit, schema if commit.replace_all else self.schema, actions)
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
            with self._forgotten_if_moved():
                tag = self._write(commit, actions)
                if tag is None:
                    raise conflict(self.name, made.version)
            made.remember(tag)

        made._on_its_way = later(entries.entry_path(self.uri, made.version), write)
        return made

    def _write(self, commit: Commit, actions: Sequence[Action]) -> str | None:
        """Writes the entry without delta-rs, which takes thirty times as long, and returns its entity tag. None if that
        is not possible: after another writer's commit, or where a new schema or a checkpoint comes with it."""
        number = self.version + 1
        if commit.replace_all or (not is_remote(self.uri) and is_due(self.uri, number)):
            return None
        lines = entry_lines(actions, properties(commit, actions))
        try:
            return write_entry(self.uri, number, lines, self._options)
        except OSError as error:
            raise StateError(f"{self.name} at {self.uri} cannot be written: {error}", "Run again.") from error

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
        new = [column.name for column in schema if column.name not in present]
        if not new:
            return None
        with self._forgotten_if_moved():
            made = self._after(Commit(), self._table.add_columns(new, schema))
            if made.version != self.version + 1:
                raise conflict(self.name, made.version)
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
        gone = frozenset(file.path for file in (self.files if commit.replace_all else commit.remove))
        schema = self.schema if table is None else Schema.from_json(table.schema().to_json())
        moved = {one.app_id: one.version for one in transactions(commit)}
        return self._next(Entry(commit.add, gone, moved), schema, table)

    def after(self, entry: Entry) -> Log:
        """The log with the next entry, which somebody has written."""
        return self._next(entry, self.schema)

    def _next(self, entry: Entry, schema: Schema, table: DeltaTable | None = None) -> Log:
        return Log(
            self.name,
            self.uri,
            version=self.version + 1,
            schema=schema,
            files=in_order((*(file for file in self.files if file.path not in entry.removed), *entry.added)),
            moved={**self.moved, **{name: version for name, version in entry.moved.items() if name in TRANSACTIONS}},
            options=self._options,
            copies=self._copies,
            table=table,
        )

    def remember(self, tag: str | None) -> None:
        """For whoever asks for it next. ``tag``: of its entry, where delta-rs has not written it."""
        commit = KNOWN.remember(self.uri, self._options, self.version, self, tag)
        if self._copies is not None and isinstance(commit, str):
            known = Snapshot(self.name, self.uri, self.version, commit, self.schema, self.moved, self.files)
            in_background(partial(write_snapshot, self._copies, known))
        if tag and is_due(self.uri, self.version):
            in_background(self._try_checkpoint)

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

    def checkpoint(self) -> None:
        """Writes a checkpoint: one file from which the log up to this version can be loaded without its entries."""
        reached("checkpoint: before")
        with self._forgotten_if_moved():
            self._table.checkpoint()
        self.settle(self.version)
        reached("checkpoint: written")

    @contextmanager
    def _forgotten_if_moved(self) -> Iterator[None]:
        """What is known of the log is forgotten if another writer has moved it."""
        try:
            yield
        except CommitConflict:
            KNOWN.forget(self.uri)
            raise


KNOWN: Known[Log] = Known()
"""The logs that this process has read."""


def _transaction(table: DeltaTable, name: str) -> int | None:
    version = table.transaction_version(name)
    return None if version is None else int(version)


def total_rows(files: Iterable[DataFile]) -> int:
    """The number of updates in the files."""
    return sum(file.rows for file in files)
