"""Conditions under which a source is complete up to a time. A sensor waits for one before it advances the frontier.

Conditions are small objects with template fields. ``holds`` may block, and is never called on an event loop. You can
define further conditions in any module that the workers and the triggerer can import.
"""

from __future__ import annotations

import glob
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import Asset, get_current_context

from airflow_differential.times import utc

if TYPE_CHECKING:
    from airflow.sdk.definitions.asset import AssetRef


class Condition(ABC):
    """A condition on a source and a time."""

    template_fields: ClassVar[Sequence[str]] = ()
    in_triggerer: ClassVar[bool] = True
    """Whether the triggerer can check it; otherwise a worker checks it repeatedly."""

    @property
    def assets(self) -> tuple[AssetRef, ...]:
        """Assets whose events it reads."""
        return ()

    @abstractmethod
    def holds(self, up_to: int) -> bool:
        """Whether the source is complete up to a time (ms)."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class's path and its arguments."""
        return f"{type(self).__module__}.{type(self).__qualname__}", asdict(self)  # type: ignore[call-overload]


def condition(serialized: Sequence[Any]) -> Condition:
    """The condition that ``serialize`` returned."""
    path, arguments = serialized
    made: Condition = import_path(path)(**arguments)
    return made


def import_path(path: str) -> Any:
    """The object at a dotted path. Raises ValueError if it cannot be imported."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{path!r} cannot be imported here: {error}. Conditions are checked in workers and in the triggerer: put "
            "it into a module that both have."
        ) from error


@dataclass
class FilesExist(Condition):
    """Files exist: a partition's, or its ``_SUCCESS``. ``path`` may contain ``*``, ``?`` and ``**``."""

    path: str
    at_least: int = 1
    template_fields: ClassVar[Sequence[str]] = ("path",)

    def holds(self, up_to: int) -> bool:
        return len(glob.glob(self.path, recursive=True)) >= self.at_least


@dataclass
class FileTimes(Condition):
    """Some file's name contains that time or a later one, so everything before is complete.

    ``path`` may contain ``*``, ``?`` and ``**``. ``pattern`` is the strftime format of the time in the name.
    """

    path: str
    pattern: str = "%Y-%m-%d"
    template_fields: ClassVar[Sequence[str]] = ("path",)

    def holds(self, up_to: int) -> bool:
        return any(self._time(name) >= up_to for name in glob.glob(self.path, recursive=True))

    def _time(self, name: str) -> int:
        escaped = re.sub(r"%[a-zA-Z]", r"[0-9A-Za-z]+", re.escape(self.pattern).replace(r"\%", "%"))
        for found in reversed(re.findall(escaped, name)):
            try:
                return utc(datetime.strptime(found, self.pattern))
            except ValueError:
                continue
        return -1


@dataclass
class EventTimes(Condition):
    """Some record's event time is at least that time. ``path`` and ``format`` are as in the source's settings
    (``parquet``, ``json``, ``csv``); ``event_time`` is a column, or a DuckDB expression over columns."""

    path: str
    event_time: str
    format: str = "parquet"
    template_fields: ClassVar[Sequence[str]] = ("path", "event_time")

    def holds(self, up_to: int) -> bool:
        files = _data_files(self.path)
        if not files:
            return False
        value = f'"{self.event_time}"' if self.event_time.isidentifier() else self.event_time
        found = _query(f"SELECT max({value}) FROM {_table_function(files, self.format)}")
        return found is not None and utc(found) >= up_to


@dataclass
class Query(Condition):
    """The first value of a query is true or nonzero. The query runs in the database of ``conn_id``, or in DuckDB, which
    can read files.

    For a number of rows: ``SELECT count(*) >= 1000 FROM read_parquet('...')``.
    """

    sql: str
    conn_id: str | None = None
    template_fields: ClassVar[Sequence[str]] = ("sql",)

    def holds(self, up_to: int) -> bool:
        if self.conn_id is None:
            return bool(_query(self.sql))
        from airflow.sdk import BaseHook

        row = BaseHook.get_connection(self.conn_id).get_hook().get_first(self.sql)
        return bool(row and row[0])


@dataclass
class CallableCondition(Condition):
    """A function of yours returns true. ``function``: a dotted path, or the function itself; it is called with the time
    (ms)."""

    function: str | Callable[[int], bool]

    def __post_init__(self) -> None:
        if not isinstance(self.function, str):
            self.function = f"{self.function.__module__}.{self.function.__qualname__}"

    def holds(self, up_to: int) -> bool:
        assert isinstance(self.function, str)
        return bool(import_path(self.function)(up_to))


@dataclass
class AssetEvents(Condition):
    """The asset of that name has an event at that time or later: by the event's timestamp, or by the time that its
    extra has under ``key``, such as ``complete_up_to`` of ``SourceFrontierSensor``. Only workers can read events."""

    name: str
    key: str | None = None
    in_triggerer: ClassVar[bool] = False

    @property
    def assets(self) -> tuple[AssetRef, ...]:
        return (Asset.ref(name=self.name),)

    def holds(self, up_to: int) -> bool:
        events = get_current_context()["inlet_events"][self.assets[0]]
        return any(self._time(event) >= up_to for event in events)

    def _time(self, event: Any) -> int:
        if self.key is None:
            return utc(event.timestamp)
        return utc(event.extra[self.key]) if self.key in event.extra else -1


def _data_files(path: str) -> list[str]:
    """The files that a source reads at the path: names that begin with ``_`` or ``.`` are ignored."""
    names = glob.glob(f"{path}/**" if os.path.isdir(path) else path, recursive=True)
    return sorted(name for name in names if os.path.isfile(name) and not os.path.basename(name).startswith(("_", ".")))


def _table_function(files: Sequence[str], form: str) -> str:
    readers = {"parquet": "read_parquet", "json": "read_json", "csv": "read_csv"}
    if form not in readers:
        raise ValueError(f"files of format {form!r} are not read here. It may be {', '.join(readers)}.")
    quoted = ", ".join("'" + name.replace("'", "''") + "'" for name in files)
    return f"{readers[form]}([{quoted}], union_by_name=true)"


def _query(sql: str) -> Any:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        row = connection.execute(sql).fetchone()
    return None if row is None else row[0]
