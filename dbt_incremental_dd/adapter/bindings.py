"""Values that dbt binds to a statement (a seed's), as exact Spark literals."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from dbt.adapters.spark.session import Connection, SessionConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.logical.sql_types import described
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.driver_answer import Answer


def _statement(words: str) -> re.Pattern[str]:
    """Of statements that begin with one of the words."""
    return re.compile(rf"\s*(/\*.*?\*/\s*)*({words})\b", re.IGNORECASE | re.DOTALL)


_ABOUT_CATALOG = r"show|describe|desc|set|create\s+(schema|database)"
_ASIDE = _statement(_ABOUT_CATALOG)
"""Statements that a command may have once and not again."""
_READS = _statement(rf"select|with|explain|{_ABOUT_CATALOG}")
"""Statements that leave all relations as they are."""
_SPECIAL = re.compile(r"[\\'$]")
"""``$`` is among them: Spark replaces ``${...}`` in a statement's text, in strings as well."""


class BoundSession(SessionConnectionWrapper):
    """dbt-spark's handle, which puts values into the text unescaped and makes numbers floats; and which would open a
    session of its own. ``asked`` hears of statements that a command has each time. ``answer`` gives the rows of a
    query for which no session is needed."""

    def __init__(
        self,
        handle: Connection,
        session: LazySession,
        asked: Callable[[], object],
        answer: Callable[[str], Answer | None] = lambda sql: None,
    ) -> None:
        super().__init__(handle)
        self._session = session
        self._asked = asked
        self._answer = answer
        self._answered: Answer | None = None

    def execute(self, sql: str, bindings: list[Any] | None = None) -> None:
        self._answered = self._answer(sql) if bindings is None else None
        if self._answered is None:
            self._execute(sql, bindings)

    def fetchall(self) -> Any:
        """As dbt-spark's."""
        if self._answered is None:
            return super().fetchall()
        columns = [map(_as_collected, column.to_pylist()) for column in self._answered.rows.columns]
        return list(zip(*columns, strict=True))

    @property
    def description(self) -> Any:
        """As dbt-spark's."""
        if self._answered is None:
            return super().description
        columns = self._answered.schema
        return [(column.name, described(column.type), None, None, None, None, True) for column in columns]

    def _execute(self, sql: str, bindings: list[Any] | None) -> None:
        if not _ASIDE.match(sql):
            self._asked()
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


def _as_collected(value: Any) -> Any:
    """The value as a session's rows have it: a moment is in the process's own time zone."""
    is_moment = isinstance(value, datetime.datetime) and value.tzinfo is not None
    return value.astimezone().replace(tzinfo=None) if is_moment else value


def literal(value: Any) -> str:
    """The value as a literal that a CAST to its column's type reads exactly."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return text_of(value)
    return "'" + _SPECIAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text_of(value)) + "'"


def text_of(value: Any) -> str:
    """The text from which a CAST to its column's type makes the value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
