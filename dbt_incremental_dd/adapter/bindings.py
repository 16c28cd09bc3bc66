"""Values that dbt binds to a statement (a seed's), as exact Spark literals."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

from dbt.adapters.spark.session import Connection, SessionConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.relation.lazy_session import LazySession

_READS = re.compile(
    r"\s*(/\*.*?\*/\s*)*(select|with|show|describe|desc|explain|set|create\s+(schema|database))\b",
    re.IGNORECASE | re.DOTALL,
)
"""Statements that leave all relations as they are."""
_SPECIAL = re.compile(r"[\\'$]")
"""``$`` is among them: Spark replaces ``${...}`` in a statement's text, in strings as well."""


class BoundSession(SessionConnectionWrapper):
    """dbt-spark's handle, which puts values into the text unescaped and makes numbers floats; and which would open a
    session of its own."""

    def __init__(self, handle: Connection, session: LazySession) -> None:
        super().__init__(handle)
        self._session = session

    def execute(self, sql: str, bindings: list[Any] | None = None) -> None:
        try:
            self._session.spark  # noqa: B018 - opened here, with the engine's settings
            self._session.settle()
        except DifferentialError as error:
            raise DbtRuntimeError(str(error)) from error
        try:
            super().execute(sql, bindings)
        finally:
            if not _READS.match(sql):
                self._session.memory.doubt()

    @classmethod
    def _fix_binding(cls, value: Any) -> str:
        return literal(value)


def literal(value: Any) -> str:
    """The value as a literal that a CAST to its column's type reads exactly."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"'{value:f}'"
    if isinstance(value, datetime.datetime):
        return f"'{value.isoformat(sep=' ')}'"
    if isinstance(value, datetime.date):
        return f"'{value.isoformat()}'"
    return "'" + _SPECIAL.sub(lambda found: f"\\u{ord(found[0]):04x}", str(value)) + "'"
