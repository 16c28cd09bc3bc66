"""The usage of one connection: one record for each message that executes a statement, or that fails."""

from __future__ import annotations

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.serve.pgwire.statements import Copy, Statement, Subscribe
from dbt_incremental_dd.serve.reader import Reader
from dbt_incremental_dd.serve.recorder import Recorder
from dbt_incremental_dd.serve.usage import Usage

SUCCESS = "00000"
INVALID_PASSWORD = "28P01"
DISCONNECTED = "08006"


class StatementUsage:
    """Belongs to one connection, whose statements come one after the other."""

    def __init__(self, reader: Reader, recorder: Recorder) -> None:
        self._reader = reader
        self._recorder = recorder
        self._is_executing = False

    def begin(self) -> None:
        """A message has come."""
        last = self._reader.usage
        self._reader.usage = Usage(last.protocol, last.user, last.peer)
        self._is_executing = False

    def execute(self, statement: Statement, sql: str) -> None:
        """It executes a statement."""
        usage, self._is_executing = self._reader.usage, True
        source = statement.source if isinstance(statement, Copy) else statement
        is_subscription = isinstance(source, Subscribe)
        usage.action, usage.sql = "subscribe" if is_subscription else "sql", sql
        if is_subscription:
            self._recorder.began(usage)

    def reads(self, collection: str | None, as_of: Time | None) -> None:
        """What the rows are of; an earlier message may have begun to read them."""
        self._reader.usage.collection, self._reader.usage.as_of = collection, as_of

    def sent(self, rows: int, size: int) -> None:
        """So many rows and bytes have been sent."""
        self._reader.usage.rows += rows
        self._reader.usage.bytes += size

    def end(self, status: str = SUCCESS) -> None:
        """The message has been handled. ``status``: an SQLSTATE."""
        usage = self._reader.usage
        if self._is_executing or status != SUCCESS:
            usage.action, usage.status = usage.action or "prepare", status
            self._recorder.ended(usage)
