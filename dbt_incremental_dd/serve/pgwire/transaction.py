"""A connection's transaction: its SELECTs read as of one time, and after an error nothing goes on before its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.serve.pgwire.errors import FAILED_TRANSACTION, IN_FAILED, PgError
from dbt_incremental_dd.serve.pgwire.statements import Statement, Transaction

NO_TRANSACTION = "25P01"


@dataclass
class TransactionState:
    """``status``: as ReadyForQuery tells it. ``time``: that of the first read, once there is one."""

    status: bytes = b"I"
    time: Time | None = None
    savepoints: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether one has been begun; it may have failed."""
        return self.status != b"I"

    def require(self, statement: Statement) -> None:
        """Raises PgError if it has failed and the statement does not end it."""
        ends = isinstance(statement, Transaction) and statement.verb in ("COMMIT", "ROLLBACK", "ROLLBACK TO")
        if self.status == b"E" and not ends:
            raise PgError(FAILED_TRANSACTION, IN_FAILED, "ROLLBACK.")

    def fail(self) -> None:
        """A statement in it has failed."""
        if self.is_open:
            self.status = b"E"

    def end(self) -> None:
        """There is none any more."""
        self.status, self.time = b"I", None
        self.savepoints.clear()

    def begin(self) -> None:
        """One begins, unless there is one."""
        if not self.is_open:
            self.status = b"T"

    def savepoint(self, statement: Transaction) -> None:
        """Sets a savepoint, releases it, or goes back to it. Raises PgError without a transaction, or if there is no
        such savepoint."""
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
