"""Settings of a connection. Those that say how this server works stay as they are, whatever a client sets."""

from __future__ import annotations

import pyarrow as pa

from dbt_incremental_dd.serve.pgwire.errors import PgError
from dbt_incremental_dd.version import version

SERVER_VERSION = f"15.0 (dbt-incremental-dd {version})"

REPORTED = {
    "server_version": SERVER_VERSION,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "TimeZone": "UTC",
    "IntervalStyle": "postgres",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
}
"""Told to every client when it connects."""

_FIXED = {
    **{name.lower(): value for name, value in REPORTED.items()},
    "server_version_num": "150000",
    "transaction_isolation": "serializable",
    "default_transaction_isolation": "serializable",
    "transaction_read_only": "on",
    "default_transaction_read_only": "on",
    "is_superuser": "off",
    "max_identifier_length": "63",
    "lc_collate": "C",
    "lc_ctype": "C",
}

_DEFAULTS = {
    "application_name": "",
    "search_path": "public",
    "extra_float_digits": "1",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "client_min_messages": "notice",
    "bytea_output": "hex",
    "row_security": "on",
    "synchronize_seqscans": "on",
    "session_authorization": "default",
    "jit": "off",
}


class Settings:
    """Names are told apart without regard to case."""

    def __init__(self, given: dict[str, str]) -> None:
        """``given``: what the client says when it connects."""
        self._given = {name.lower(): value for name, value in given.items()}
        self._set: dict[str, str] = {}

    def set(self, name: str, value: str | None) -> None:
        """None for the default. Raises PgError for another encoding than UTF-8."""
        name = name.lower()
        if name in ("client_encoding", "names") and value is not None:
            if value.upper().replace("-", "").replace("_", "") not in ("UTF8", "UNICODE"):
                raise PgError("22023", f"encoding {value} is not spoken", "Use UTF8.")
            return
        if value is None:
            self._set.pop(name, None)
        else:
            self._set[name] = value

    def reset(self) -> None:
        """All have their defaults."""
        self._set.clear()

    def show(self, name: str) -> pa.Table:
        """One row. Raises PgError for a setting that nobody knows."""
        if name == "all":
            known = {**_DEFAULTS, **self._given, **self._set, **_FIXED}
            names = sorted(known)
            return pa.table(
                {"name": names, "setting": [known[name] for name in names], "description": [""] * len(names)}
            )
        for known in (_FIXED, self._set, self._given, _DEFAULTS):
            if name in known:
                return pa.table({name: [known[name]]})
        raise PgError("42704", f'unrecognized configuration parameter "{name}"')
