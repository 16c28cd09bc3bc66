"""Values of expressions without columns: asked of Spark once, which needs no job for them. Plain literals are known."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable
from functools import cached_property

import pyarrow as pa
from pyspark.errors import PySparkException
from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.plain_text import parser_of
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Decimal,
    Field,
    Struct,
)
from dbt_incremental_dd.local.coercion import is_comparable
from dbt_incremental_dd.local.expressions import constant
from dbt_incremental_dd.local.names import NAMES
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.zones import moments_in
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.lazy_session import Dialect, LazySession
from dbt_incremental_dd.trace.arrow import arrow_type, is_flat
from dbt_incremental_dd.trace.spark_reader import schema_of
from dbt_incremental_dd.trace.spark_to_arrow import to_arrow

_NUMBER = re.compile(r"(-?\d{1,9})|(-?\d{1,18})L")
_TEXT = re.compile(r"'((?:[^'\\$]|\$(?!\{)|\\\\)*)'")
"""``${`` may begin a variable, which Spark replaces in a statement's text."""
_DECIMAL = re.compile(r"-?(\d{1,18})\.(\d{1,18})")
_ISO = r"'((?:1[6-9]|2\d)\d\d-\d\d-\d\d)'"
"""Days that are the same in every calendar."""
_DAY = re.compile(rf"DATE ?{_ISO}|CAST\({_ISO} AS DATE\)", re.IGNORECASE)
_MOMENT = re.compile(r"timestamp_millis\((\d{1,14})L\)", re.IGNORECASE)
"""As ``logical.now`` writes a run's time."""
_TIMED = re.compile(r"(TIMESTAMP(?:_LTZ|_NTZ)?) ?'([^'\\\\]*)'", re.IGNORECASE)
_DOUBLE = re.compile(
    r"(-?\d{1,17}(?:\.\d{1,17})?(?:E[+-]?\d{1,2})?)D|(-?\d{1,17}(?:\.\d{1,17})?E[+-]?\d{1,2})", re.IGNORECASE
)
_WORDS = {"TRUE": (True, BOOLEAN), "FALSE": (False, BOOLEAN), "NULL": (None, VOID)}
_MOST_ROWS, _MOST_BYTES = 5_000, 20_000
"""Of a query's rows that are remembered."""
_Known = dict[tuple[Dialect, str], Value | None]
_KNOWN: _Known = {}


class Literals:
    """Those that need no question: plain literals. ``session``: whose rules and time zone they have."""

    def __init__(self, session: LazySession) -> None:
        self._session = session

    @cached_property
    def has_usual_types(self) -> bool:
        """Whether the session gives values and types as Spark does by default."""
        return self._session.has_usual_rules

    @cached_property
    def time_zone(self) -> str:
        """The session's time zone, by the name that it was set with."""
        return self._dialect[0]

    @cached_property
    def _dialect(self) -> Dialect:
        """Asked once: these constants are of one model's run."""
        return self._session.dialect

    def value_of(self, sql: str) -> Value:
        """The literal's value. Raises NotExact for other expressions."""
        found = self.literal(sql)
        if found is None:
            raise NotExact(f"{sql} is no plain literal")
        return found

    def literal(self, sql: str) -> Value | None:
        """The literal's value; None of other expressions."""
        if "\\" in sql and not self.has_usual_types:  # it may be no escape
            return None
        timed = _TIMED.fullmatch(sql)
        return _literal(sql) if timed is None else self._time(timed[1].upper(), timed[2])

    def _time(self, word: str, text: str) -> Value | None:
        """Of a time in the session's time zone, or without any; None where only Spark can read it."""
        dtype = TIMESTAMP_NTZ if word.endswith("NTZ") else TIMESTAMP
        parse = parser_of(dtype, moments_in(lambda: self.time_zone))
        assert parse is not None
        try:
            return Value(pa.scalar(parse(text), arrow_type(dtype)), dtype) if self.has_usual_types else None
        except ValueError:
            return None


class DriverConstants(Literals):
    """Those that the driver computes."""

    def __init__(self, session: LazySession) -> None:
        super().__init__(session)
        self._computed: dict[str, Value | None] = {}

    def value_of(self, sql: str) -> Value:
        """The expression's value. Raises NotExact for one that only Spark computes."""
        found = self.known(sql)
        return super().value_of(sql) if found is None else found

    def known(self, sql: str) -> Value | None:
        """The expression's value, if the driver computes it."""
        return self.literal(sql) or self._of_driver(sql)

    def _of_driver(self, sql: str) -> Value | None:
        if sql not in self._computed:
            try:
                self._computed[sql] = constant(Expr(sql), Literals(self._session))
            except NotExact:
                self._computed[sql] = None
        return self._computed[sql]


class SparkConstants(DriverConstants):
    """Those of a session, which is asked for what the driver does not compute."""

    def __init__(self, session: LazySession) -> None:
        super().__init__(session)
        self._of_run: _Known = {}

    def value_of(self, sql: str) -> Value:
        """The expression's value. Raises NotExact if it has none, such as that of a division by zero."""
        return self.literal(sql) or self._asked(sql)

    def rows_of(self, sql: str) -> Table | None:
        """The rows of a query over nothing, of which Spark is asked once if the driver does not compute them; None if
        they are many, or not of plain types. Raises what Spark does."""
        found = self._remembered(sql, self._few_rows)
        if found is None:
            return self._session.literal_rows(sql)
        assert isinstance(found.type, Struct)
        schema = Schema(tuple(Column(field.name, field.type) for field in found.type.fields))
        return Table(pa.Table.from_struct_array(found.data.values), schema)

    def _few_rows(self, sql: str) -> Value | None:
        """As a list of structs; None of many."""
        computed = self._session.literal_rows(sql)
        return self._rows_of_spark(sql) if computed is None else _listed(computed)

    def _rows_of_spark(self, sql: str) -> Value | None:
        frame = self._session.spark.sql(sql)
        frame = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
        schema = schema_of(frame.schema)
        if not schema.names or not is_flat(schema):
            return None
        return _listed(Table(to_arrow(frame, limit=_MOST_ROWS + 1), schema))

    def _asked(self, sql: str) -> Value:
        found = self._of_driver(sql) or self._remembered(sql, self._of_spark)
        assert found is not None
        return found

    def _remembered(self, sql: str, ask: Callable[[str], Value | None]) -> Value | None:
        """What somebody was asked once: in this run, and in earlier ones if it calls Spark's own functions alone. Those
        of the user's own may be defined anew."""
        key, memory, lasts = (self._dialect, sql), self._session.memory, self._lasts(sql)
        known = _KNOWN if lasts else self._of_run
        if key not in known:
            known[key] = (memory.constant(*key) if lasts else None) or ask(sql)
        found = known[key]
        if lasts and found is not None:
            memory.keep_constant(*key, found)
        return found

    def _lasts(self, sql: str) -> bool:
        tree = Expr(sql).tree
        if any(isinstance(dot.expression, exp.Anonymous) for dot in tree.find_all(exp.Dot)):
            return False
        others = {str(call.this).lower() for call in tree.find_all(exp.Anonymous)} - NAMES
        return not others or others <= self._session.functions

    def _of_spark(self, sql: str) -> Value:
        try:
            frame = self._session.spark.sql(f"SELECT {sql} AS dd_value")
            (column,) = schema_of(frame.schema)
            if column.type != VOID and not is_comparable(column.type):
                raise NotExact(f"a constant {column.type}")
            if column.type == TIMESTAMP:  # Python's datetimes would be in this process's time zone
                frame = frame.selectExpr("unix_micros(dd_value)")
            (row,) = frame.collect()
        except (PySparkException, UnsupportedSQL) as error:
            raise NotExact(f"{sql} has no value") from error
        return Value(pa.scalar(row[0], arrow_type(column.type)), column.type)


def _literal(sql: str) -> Value | None:
    """The value of a number, a plain text, a day, NULL, true or false; None of other expressions."""
    number = _NUMBER.fullmatch(sql)
    if number:
        type = LONG if number[2] else INTEGER
        return Value(pa.scalar(int(number[1] or number[2]), arrow_type(type)), type)
    text = _TEXT.fullmatch(sql)
    if text:
        return Value(pa.scalar(text[1].replace("\\\\", "\\"), pa.string()), STRING)
    exact = _DECIMAL.fullmatch(sql)
    if exact:
        digits, scale = len((exact[1] + exact[2]).lstrip("0")), len(exact[2])
        dtype = Decimal(max(digits, scale), scale)
        return Value(pa.scalar(decimal.Decimal(sql), arrow_type(dtype)), dtype)
    day = _DAY.fullmatch(sql)
    if day:
        return _day(day[1] or day[2])
    moment = _MOMENT.fullmatch(sql)
    if moment:
        return Value(pa.scalar(int(moment[1]) * 1000, arrow_type(TIMESTAMP)), TIMESTAMP)
    double = _DOUBLE.fullmatch(sql)
    if double:
        return Value(pa.scalar(float(double[1] or double[2]), pa.float64()), DOUBLE)
    word = _WORDS.get(sql.upper())
    return Value(pa.scalar(word[0]), word[1]) if word else None


def _day(text: str) -> Value | None:
    """The day that is written ``YYYY-MM-DD``; None if no month has it."""
    try:
        return Value(pa.scalar(datetime.date.fromisoformat(text), arrow_type(DATE)), DATE)
    except ValueError:
        return None


def _listed(rows: Table) -> Value | None:
    """The rows as a list of structs; None if they are many, or not of plain types."""
    if rows.num_rows > _MOST_ROWS or rows.arrow.nbytes > _MOST_BYTES or not is_flat(rows.schema):
        return None
    table = rows.arrow.to_struct_array().combine_chunks()
    struct = Struct(tuple(Field(column.name, column.type) for column in rows.schema))
    return Value(pa.scalar(table.to_pylist(), pa.list_(table.type)), struct)
