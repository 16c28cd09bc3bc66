"""Parsed statements: SELECT, SUBSCRIBE, cursors, COPY to the client, transactions and settings."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.core.time import Time


@dataclass(frozen=True)
class Select:
    """A SELECT, VALUES, SHOW TABLES, ..., with an optional AS OF at its end."""

    sql: str


@dataclass(frozen=True)
class Subscribe:
    """Either ``collection`` or ``select`` is set. ``progress``: also return a row for each advance of the frontier."""

    collection: str | None
    select: str | None
    key: tuple[str, ...] = ()
    progress: bool = False
    snapshot: bool = True
    as_of: Time | None = None
    up_to: Time | None = None


Source = Select | Subscribe


@dataclass(frozen=True)
class Declare:
    """``hold``: the cursor outlives its transaction."""

    name: str
    source: Source
    hold: bool


@dataclass(frozen=True)
class Fetch:
    """``count``: None for all. ``timeout``: seconds to wait for the first row of a subscription; None: no limit."""

    name: str
    count: int | None
    timeout: float | None


@dataclass(frozen=True)
class Close:
    """``name``: None for all cursors."""

    name: str | None


@dataclass(frozen=True)
class Copy:
    """COPY ... TO STDOUT. ``form``: ``text`` or ``csv``."""

    source: Source
    form: str
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"


@dataclass(frozen=True)
class Transaction:
    """``verb``: BEGIN, COMMIT or ROLLBACK; or SAVEPOINT, RELEASE or ROLLBACK TO, with a ``name``."""

    verb: str
    name: str = ""


@dataclass(frozen=True)
class Set:
    """``verb``: SET, RESET or DISCARD. ``value``: None for the default. RESET ALL and DISCARD ALL have no name."""

    verb: str
    name: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class Show:
    """``name``: in lower case; ``all`` for all settings."""

    name: str


@dataclass(frozen=True)
class Deallocate:
    """``name``: None for all prepared statements."""

    name: str | None


Statement = Select | Subscribe | Declare | Fetch | Close | Copy | Transaction | Set | Show | Deallocate
