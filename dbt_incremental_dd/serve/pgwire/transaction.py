"""A connection's transaction: all its SELECTs read as of one time; after an error it accepts nothing but its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.serve.pgwire.errors import FAILED_TRANSACTION, IN_FAILED, PgError
from dbt_incremental_dd.serve.pgwire.statements import Statement, Transaction

NO_TRANSACTION = "25P01"


@dataclass
class TransactionState:
    """``status``: as in ReadyForQuery. ``time``: the time of the first read; None before it."""

    status: bytes = b"I"
    time: Time | None = None
    savepoints: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open; it may have failed."""
        return self.status != b"I"

    def require(self, statement: Statement) -> None:
        """Raises PgError if the transaction has failed and the statement does not end it."""
        ends = isinstance(statement, Transaction) and statement.verb in ("COMMIT", "ROLLBACK", "ROLLBACK TO")
        if self.status == b"E" and not ends:
            raise PgError(FAILED_TRANSACTION, IN_FAILED, "ROLLBACK.")

    def fail(self) -> None:
        """Marks an open transaction as failed."""
        if self.is_open:
            self.status = b"E"

    def end(self) -> None:
        """Ends the transaction."""
        self.status, self.time = b"I", None
        self.savepoints.clear()

    def begin(self) -> None:
        """Begins a transaction unless one is open."""
        if not self.is_open:
            self.status = b"T"

    def savepoint(self, statement: Transaction) -> None:
        """Sets a savepoint, releases it, or rolls back to it. Raises PgError outside of a transaction, or if there is
        no such savepoint."""
        if not self.is_open:
            raise PgError(NO_TRANSACTION, f"{statement.verb} can only be used in transaction blocks")
        if statement.verb == "SAVEPOINT":
            self.savepoints.append(statement.name)
            return
        if statement.name not in self.savepoints:
            raise PgError("3B001", f'savepoint "{statement.name}" does not exist')
        at = len(self.savepoints) - 1 - self.savepoints[::-1].index(statement.name)
        del self.savepoints[at if statement.verb == "RELEASE" else at + 1 :]
        self.status = b"T"
