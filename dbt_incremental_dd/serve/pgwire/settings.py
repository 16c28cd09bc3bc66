"""A connection's settings. Clients cannot change those that describe how the server works."""

from __future__ import annotations

import re
import shlex

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
"""Reported to every client when it connects."""

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


_TIMEOUT = "statement_timeout"
_UNITS = {"": 1e-3, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Settings:
    """Settings by name, case-insensitive."""

    def __init__(self, startup: dict[str, str]) -> None:
        """``startup``: the client's start-up parameters. Raises PgError for an invalid ``statement_timeout``."""
        self._startup = {name.lower(): value for name, value in startup.items()}
        self._startup |= _options(self._startup.pop("options", ""))
        self._set: dict[str, str] = {}
        self._server: dict[str, str] = {}
        _seconds(self._startup.get(_TIMEOUT, "0"))

    def set_server_timeout(self, seconds: float | None) -> None:
        """Sets the server's ``statement_timeout``, which clients can lower."""
        self._server = {_TIMEOUT: "0" if seconds is None else f"{seconds * 1000:.0f}ms"}

    @property
    def statement_timeout(self) -> float | None:
        """The client's time limit for a statement in seconds; None if it has set none."""
        return _seconds(self._set.get(_TIMEOUT, self._startup.get(_TIMEOUT, "0"))) or None

    def set(self, name: str, value: str | None) -> None:
        """Sets a setting; None resets it. Raises PgError for an encoding other than UTF-8, or an invalid time limit."""
        name = name.lower()
        if name == _TIMEOUT and value is not None:
            _seconds(value)
        if name in ("client_encoding", "names") and value is not None:
            if value.upper().replace("-", "").replace("_", "") not in ("UTF8", "UNICODE"):
                raise PgError("22023", f"encoding {value} is not supported", "Use UTF8.")
            return
        if value is None:
            self._set.pop(name, None)
        else:
            self._set[name] = value

    def reset(self) -> None:
        """Resets all settings to their defaults."""
        self._set.clear()

    def show(self, name: str) -> pa.Table:
        """A table of one row, or of all settings for ``all``. Raises PgError for an unknown setting."""
        if name == "all":
            known = {**_DEFAULTS, **self._server, **self._startup, **self._set, **_FIXED}
            names = sorted(known)
            return pa.table(
                {"name": names, "setting": [known[name] for name in names], "description": [""] * len(names)}
            )
        for known in (_FIXED, self._set, self._startup, self._server, _DEFAULTS):
            if name in known:
                return pa.table({name: [known[name]]})
        raise PgError("42704", f'unrecognized configuration parameter "{name}"')


def _seconds(text: str) -> float:
    """Seconds of a Postgres duration: ms, or a number with a unit; 0 for no limit. Raises PgError for anything else."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)\s*([a-z]*)", text.strip().strip("'").strip())
    if not found or found[2] not in _UNITS:
        raise PgError("22023", f'invalid value for parameter "{_TIMEOUT}": "{text}"', "Write ms, or 30s, or 5min.")
    return float(found[1]) * _UNITS[found[2]]


def _options(text: str) -> dict[str, str]:
    """The settings in libpq's ``options``: ``-c name=value`` or ``--name=value``."""
    try:
        words = shlex.split(text)
    except ValueError:
        return {}
    assignments = [word.removeprefix("-c").removeprefix("--") for word in words if word != "-c"]
    pairs = [word.partition("=") for word in assignments if "=" in word]
    return {name.strip().lower().replace("-", "_"): value for name, _, value in pairs}
