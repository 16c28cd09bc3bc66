"""Connections to a server, and its errors as what is wrong and what to do; the url's password is in neither."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

_SECONDS = 5
"""Until a server that does not answer counts as unreachable."""
_SETTINGS = {
    "datestyle": "ISO",
    "timezone": "UTC",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmloption": "content",
    "lc_monetary": "C",
    "row_security": "off",
    "statement_timeout": "0",
}
"""On which the text of values depends; a copy that row-level security would thin out is an error."""
_DEFAULTS = {
    "application_name": "dbt-incremental-dd",
    "connect_timeout": _SECONDS,
    "keepalives_idle": 30,
    "tcp_user_timeout": 60_000,
}
"""Where the url does not say otherwise; a connection whose other end has vanished is noticed."""


class PostgresError(DatabaseError):
    """What is wrong with a server, a slot or a table of PostgreSQL, and what to do."""


def require_client() -> None:
    """Raises ConfigError where psycopg is not installed."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "connector postgres needs psycopg, which is not installed or lacks libpq",
            "Install it: pip install 'dbt-incremental-dd[postgres]'.",
        ) from error


def parameters(url: str) -> dict[str, Any]:
    """The url's parts by libpq's names. Raises PostgresError where it is none, without telling it."""
    require_client()
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        if not url.startswith(("postgresql://", "postgres://")):
            raise ValueError
        return dict(conninfo_to_dict(url))
    except (psycopg.Error, ValueError):
        raise PostgresError(
            "options.url is no URL of PostgreSQL's",
            "Write postgresql://user:password@host:port/database; what is special in a password as %40 and the like.",
        ) from None


def connect(url: str, lock_timeout: float = 0, **options: Any) -> Connection:
    """A connection in autocommit mode. Raises PostgresError where there is none within seconds."""
    import psycopg

    given = parameters(url)
    settings = {**_SETTINGS, "lock_timeout": str(int(lock_timeout * 1000))}
    words = [f"-c {name}={value}" for name, value in settings.items()]
    given["options"] = " ".join([str(given.get("options") or ""), *words]).strip()
    given = {**_DEFAULTS, **given}
    try:
        return psycopg.connect(**{**given, "client_encoding": "UTF8", **options}, autocommit=True)
    except psycopg.Error as error:
        raise _unreachable(url, given, error) from None


@contextmanager
def connected(url: str, **options: Any) -> Iterator[Connection]:
    """A connection that is closed at the end; what the server refuses is PostgresError."""
    with told(url):
        connection = connect(url, **options)
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def told(url: str) -> Iterator[None]:
    """Makes errors of the client's PostgresError."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise _postgres_error(url, error) from None


def scrubbed(url: str, text: str) -> str:
    """The text without the url's secrets, also where the url was taken apart in other places than meant."""
    inside = re.search(r"://[^:@]*:(.*)@", url, re.DOTALL)
    found = {inside[1], unquote(inside[1])} if inside else set()
    found |= {part for secret in list(found) for part in re.split(r"[:@/?#]", secret)}
    given = re.findall(r"(?:password|sslpassword)=([^&\s]+)", url)
    found |= {form for secret in given for form in (secret, unquote(secret))}
    for secret in sorted(filter(None, found), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _unreachable(url: str, given: dict[str, Any], error: psycopg.Error) -> PostgresError:
    where = f"{given.get('host', 'localhost')}:{given.get('port', 5432)}, database {given.get('dbname', '')}"
    words = scrubbed(url, _first_line(error))
    if "max_wal_senders" in str(error):
        return PostgresError(
            f"the server refuses: {words}", "Raise max_wal_senders, or end replication that nobody needs."
        )
    if "permission denied" in str(error) or "must be superuser or replication" in str(error):
        return _not_allowed(words)
    return PostgresError(
        scrubbed(url, f"the server at {where}, cannot be reached: {words}"), "Check options.url, and that it runs."
    )


def _postgres_error(url: str, error: psycopg.Error) -> PostgresError:
    words, state = scrubbed(url, _first_line(error)), error.sqlstate
    if state == "42501" and "replication" in words:
        return _not_allowed(words)
    if state == "42501":
        return PostgresError(words, "Grant it to the user of options.url: USAGE on the schema and SELECT on the table.")
    if state == "55006":
        return PostgresError(
            words, "Somebody else follows it: end that, or give the source a slot of its own, options.slot."
        )
    if state == "53400":
        return PostgresError(
            words, "Raise max_replication_slots, or drop a slot that nobody needs (pg_replication_slots)."
        )
    if state == "55P03":
        return PostgresError(
            "a transaction has been open for too long for the log to be read from a consistent point",
            "Find it in pg_stat_activity (state, xact_start), end it, and run again.",
        )
    if state is None or state[:2] in ("57", "08"):
        return PostgresError(f"the connection was lost: {words}", "Run again when the server is back; nothing is lost.")
    return PostgresError(f"the server refuses: {words}", "Correct what it names, and run again.")


def _not_allowed(words: str) -> PostgresError:
    return PostgresError(words, "Let the user of options.url read the log: ALTER ROLE ... REPLICATION.")


def _first_line(error: psycopg.Error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
