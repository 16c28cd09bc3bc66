"""Values of expressions without columns: asked of Spark once, which needs no job for them; plain numbers are known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.types import BOOLEAN, INTEGER, LONG, VOID
from dbt_incremental_dd.local.decimals import is_comparable
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.spark_reader import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_USUAL = {
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
}
"""What types of decimals depend on, with the values for which they are known here."""
_NUMBER = re.compile(r"(-?\d{1,9})|(-?\d{1,18})L")
_WORDS = {
    "TRUE": Value(pa.scalar(True), BOOLEAN),
    "FALSE": Value(pa.scalar(False), BOOLEAN),
    "NULL": Value(pa.scalar(None), VOID),
}
_KNOWN: dict[tuple[str, str, str], Value] = {}
_SESSIONS: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()
"""Which sessions have the usual types: asked once, not for each model and source."""


class SparkConstants:
    """Those of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def has_usual_types(self) -> bool:
        """Whether the session derives decimals' types as Spark does by default."""
        if self._spark not in _SESSIONS:
            conf = self._spark.conf
            _SESSIONS[self._spark] = all(str(conf.get(name, value)).lower() == value for name, value in _USUAL.items())
        return _SESSIONS[self._spark]

    def value_of(self, sql: str) -> Value:
        """The expression's value. Raises NotExact if it has none, such as that of a division by zero."""
        number = _NUMBER.fullmatch(sql)
        if number:
            type = LONG if number[2] else INTEGER
            return Value(pa.scalar(int(number[1] or number[2]), arrow_type(type)), type)
        return _WORDS.get(sql.upper()) or self._asked(sql)

    def _asked(self, sql: str) -> Value:
        conf = self._spark.conf
        key = (sql, conf.get("spark.sql.session.timeZone") or "", conf.get("spark.sql.ansi.enabled") or "")
        if key not in _KNOWN:
            try:
                frame = self._spark.sql(f"SELECT {sql} AS dd_value")
                (column,) = schema_of(frame.schema)
                if column.type != VOID and not is_comparable(column.type):
                    raise NotExact(f"a constant {column.type}")
                (row,) = frame.collect()
            except (PySparkException, UnsupportedSQL) as error:
                raise NotExact(f"{sql} has no value") from error
            _KNOWN[key] = Value(pa.scalar(row[0], arrow_type(column.type)), column.type)
        return _KNOWN[key]
