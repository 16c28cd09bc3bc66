"""What a client may say, as values: SELECT, SUBSCRIBE, cursors, COPY to the client, transactions and settings."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.core.time import Time


@dataclass(frozen=True)
class Select:
    """A SELECT, VALUES, SHOW TABLES, ...; with AS OF at its end where it tells its time."""

    sql: str


@dataclass(frozen=True)
class Subscribe:
    """Either ``collection`` or ``select`` is given. ``progress``: a row tells each advance of the frontier."""

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
    """``hold``: it outlives its transaction."""

    name: str
    source: Source
    hold: bool


@dataclass(frozen=True)
class Fetch:
    """``count``: None for all. ``timeout``: seconds to wait for the first row of a subscription; None: for ever."""

    name: str
    count: int | None
    timeout: float | None


@dataclass(frozen=True)
class Close:
    """``name``: None for all cursors."""

    name: str | None


@dataclass(frozen=True)
class Copy:
    """To the client, as ``form``: ``text`` or ``csv``."""

    source: Source
    form: str
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"


@dataclass(frozen=True)
class Transaction:
    """``verb``: BEGIN, COMMIT, ROLLBACK; or with a name SAVEPOINT, RELEASE, ROLLBACK TO."""

    verb: str
    name: str = ""


@dataclass(frozen=True)
class Set:
    """``verb``: SET, RESET, DISCARD. ``value``: None for the default. RESET and DISCARD ALL have no name."""

    verb: str
    name: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class Show:
    """``name``: in small letters; ``all`` for all settings."""

    name: str


@dataclass(frozen=True)
class Deallocate:
    """``name``: None for all prepared statements."""

    name: str | None


Statement = Select | Subscribe | Declare | Fetch | Close | Copy | Transaction | Set | Show | Deallocate
