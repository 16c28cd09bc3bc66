"""The Spark session of a run: opened when something is asked of Spark, and not before.

What a session would say of itself is known without it where a former one, of the same configuration, has said so.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Value
from dbt_incremental_dd.relation.due import DueRelations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = {
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.integralDivide.returnBigint": "true",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "corrected",
    "spark.sql.timestampType": "timestamp_ltz",
    "spark.sql.parser.escapedStringLiterals": "false",
}
"""What values and types of expressions depend on beside the dialect, with Spark's defaults in lower case."""
TIME_ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
Dialect = tuple[str, str]
"""What values of expressions depend on: the session's time zone, and whether it is in ANSI mode."""
Meaning = tuple[str, str, dict[str, str]]
"""The dialect, and those of ``RULES`` that are not Spark's defaults."""
_FUNCTIONS: WeakKeyDictionary[SparkSession, frozenset[str]] = WeakKeyDictionary()
_USUAL: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


class SessionMemory:
    """What is known of a session that is not open. This one knows nothing."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The session's settings, of those that ``settings_of`` asks for; none if they are not known."""
        return {}

    def configured(self, name: str) -> str:
        """What a setting of the session is configured as; empty for Spark's default, or if that is not known."""
        return ""

    @property
    def functions(self) -> frozenset[str]:
        """The names of Spark's own functions, in lower case; none if they are not known."""
        return frozenset()

    def constant(self, dialect: Dialect, sql: str) -> Value | None:
        """The value of an expression without columns; None if it is not known."""
        return None

    def keep_constant(self, dialect: Dialect, sql: str, value: Value) -> None:
        """Remembers the value of an expression without columns."""

    @property
    def opening(self) -> float:
        """Seconds that opening the session takes; 0 if that is not known."""
        return 0.0

    def before_opening(self) -> None:
        """A session is about to be opened."""

    def keep(self, spark: SparkSession, opening: float) -> None:
        """Asks a session that was just opened, in so many seconds."""

    @property
    def schemas(self) -> tuple[str, ...]:
        """The catalog's schemas, in lower case; none if they are not certain."""
        return ()

    def keep_schemas(self, schemas: Iterable[str]) -> None:
        """Remembers which schemas the catalog has."""

    def keep_schema(self, schema: str) -> None:
        """Remembers that a schema was made, if the catalog's schemas are remembered."""

    def views(self, schema: str) -> frozenset[str] | None:
        """The views of a schema, in lower case; None if they are not certain."""
        return None

    def keep_views(self, schema: str, views: Iterable[str]) -> None:
        """Remembers which views a schema has."""

    def keep_view(self, schema: str, name: str, *, is_there: bool) -> None:
        """Remembers that a view was made or dropped, if the schema's views are remembered."""

    def has_table(self, relation: str) -> bool:
        """Whether a table is certain to be defined as when it was last looked at."""
        return False

    def keep_table(self, relation: str) -> None:
        """Remembers that a table was looked at."""

    @property
    def follows_catalog(self) -> bool:
        """Whether it can tell that somebody has opened the catalog."""
        return False

    def is_table(self, schema: str, name: str) -> bool:
        """Whether a relation is certain to be there, as a table."""
        return False

    @property
    def due(self) -> DueRelations | None:
        """The relations that the next session has to make; None if each has to be made at once, because others may
        read the catalog."""
        return None

    def relation_type(self, schema: str, name: str) -> str | None:
        """Whether there is a ``view`` of that name, a ``table`` that the next session has to make, or nothing (empty);
        None if that is not certain. In lower case."""
        return None

    def doubt(self) -> None:
        """A statement of somebody else's may have changed the catalog: what has been seen of it so far no longer
        counts."""

    def has_statements(self, command: str) -> bool:
        """Whether that command, the last time, had statements for the session that are not the engine's."""
        return False

    def note_statement(self, command: str) -> None:
        """The command has had such a statement, in this process."""

    def keep_statements(self, command: str) -> None:
        """The command has ended: remembers whether it has had one."""

    def save(self) -> None:
        """Stores what is new, for later processes."""

    def leave(self) -> None:
        """This process has no more statements, for now: stores how it leaves the catalog, where others share it."""


_WARMING = 60.0
"""Seconds."""


class LazySession:
    """A Spark session that is opened by whoever first asks for it. Threads may share it.

    ``open`` is called once; ``settle`` makes the relations that are due in its catalog; ``literal_rows`` computes
    queries over nothing without it.
    """

    def __init__(
        self,
        open: Callable[[], SparkSession],
        memory: SessionMemory | None = None,
        settle: Callable[[LazySession], None] = lambda session: None,
        literal_rows: Callable[[LazySession, str], Table | None] = lambda session, sql: None,
    ) -> None:
        self._open = open
        self._settle = settle
        self._literal_rows = literal_rows
        self._settling = threading.RLock()
        self._spark: SparkSession | None = None
        self._opened_at: float | None = None
        self._lock = threading.RLock()
        self._waits = threading.local()
        self.memory = memory or SessionMemory()

    @staticmethod
    def of(spark: SparkSession) -> LazySession:
        """A session that is open already."""
        made = LazySession(lambda: spark)
        made._spark = spark
        return made

    @property
    def is_open(self) -> bool:
        """Whether it can be asked without being opened."""
        return self._spark is not None

    @property
    def spark(self) -> SparkSession:
        """The session. Raises what opening it does."""
        if self._spark is None:
            started = time.monotonic()
            with self._lock:
                if self._spark is None:
                    self.memory.before_opening()
                    opened = self._open()
                    self.memory.keep(opened, time.monotonic() - started)
                    self._opened_at = time.monotonic()
                    self._spark = opened
            self.settle()
            self._waits.seconds = self.waited + time.monotonic() - started
        return self._spark

    def settle(self) -> None:
        """The catalog of the open session has all relations from now on. Call it before somebody else's statement."""
        with self._settling:
            if self.memory.due:
                self._settle(self)

    def literal_rows(self, sql: str) -> Table | None:
        """The rows of a query that reads nothing, under its names; None for what only Spark computes."""
        return self._literal_rows(self, sql)

    def open_ahead(self) -> None:
        """Begins to open it beside what the caller does meanwhile. What goes wrong is raised to whoever asks for it."""
        threading.Thread(target=self._attempt, name="opens Spark's session", daemon=True).start()

    def _attempt(self) -> None:
        with contextlib.suppress(Exception):
            self.spark  # noqa: B018 - opened

    @property
    def waited(self) -> float:
        """Seconds that this thread has waited for the session to open."""
        return float(getattr(self._waits, "seconds", 0.0))

    @property
    def opening(self) -> float:
        """Seconds that the next question to Spark takes longer than those after it: all of opening the session, and
        for a while about as much again, while its JVM compiles what it runs for the first time."""
        if not self.is_open:
            return self.memory.opening
        age = math.inf if self._opened_at is None else time.monotonic() - self._opened_at
        return self.memory.opening * max(0.0, 1.0 - age / _WARMING)

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of Spark's own functions, in lower case."""
        return self.memory.functions or functions_of(self.spark)

    @cached_property
    def has_usual_rules(self) -> bool:
        """Whether expressions have the values and types that they have in Spark by default."""
        known = {} if self.is_open else self.memory.settings
        return _are_usual(known) if known else usual_rules(self.spark)

    @cached_property
    def unusual_rules(self) -> Mapping[str, str]:
        """The settings by which expressions have other values and types than by default."""
        if self.has_usual_rules:
            return {}
        settings = {} if self.is_open else self.memory.settings
        return {name: text for name, text in (settings or settings_of(self.spark)).items() if _is_unusual(name, text)}

    @property
    def dialect(self) -> Dialect:
        """As it is set now."""
        known = {} if self.is_open else self.memory.settings
        conf = known or self.spark.conf
        return conf.get(TIME_ZONE) or "", conf.get(ANSI) or ""

    @property
    def meaning(self) -> Meaning:
        """All that values of expressions depend on; the dialect as it is set now."""
        return (*self.dialect, dict(self.unusual_rules))


def functions_of(spark: SparkSession) -> frozenset[str]:
    """The names of Spark's own functions, in lower case. Asks the session once."""
    if spark not in _FUNCTIONS:
        _FUNCTIONS[spark] = frozenset(row[0].lower() for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect())
    return _FUNCTIONS[spark]


def settings_of(spark: SparkSession) -> dict[str, str]:
    """What the values and types of expressions depend on, as the session has it set."""
    conf = spark.conf
    own = {name: str(conf.get(name) or "") for name in (TIME_ZONE, ANSI)}
    return {**own, **{name: str(conf.get(name, value)) for name, value in RULES.items()}}


def expected_settings(configured: Mapping[str, str]) -> dict[str, str]:
    """What ``settings_of`` gives for a session that is configured so, and by Spark's defaults; none if its time zone
    is not configured."""
    if TIME_ZONE not in configured:
        return {}
    own = {TIME_ZONE: configured[TIME_ZONE], ANSI: configured.get(ANSI, "true")}
    return {**own, **{name: configured.get(name, value) for name, value in RULES.items()}}


def usual_rules(spark: SparkSession) -> bool:
    """Whether the session gives expressions the values and types that they have by default. Asks it once."""
    if spark not in _USUAL:
        _USUAL[spark] = _are_usual(settings_of(spark))
    return _USUAL[spark]


def _are_usual(settings: Mapping[str, str]) -> bool:
    return not any(_is_unusual(name, settings.get(name, "")) for name in RULES)


def _is_unusual(name: str, text: str) -> bool:
    return name in RULES and text.lower() != RULES[name]
