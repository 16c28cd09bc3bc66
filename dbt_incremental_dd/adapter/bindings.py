"""Values that dbt binds to a statement (a seed's), as exact Spark literals."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

from dbt.adapters.spark.session import SessionConnectionWrapper

_SPECIAL = re.compile(r"[\\'$]")
"""``$`` is among them: Spark replaces ``${...}`` in a statement's text, in strings as well."""


class BoundSession(SessionConnectionWrapper):
    """dbt-spark's handle, which puts values into the text unescaped and makes numbers floats."""

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
