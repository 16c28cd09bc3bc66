"""The history of rows with a key: each key's versions, one after the other.

A key's row becomes a version that is valid from its time on, and ends the version that it comes in. The times are the
run's, or the data's. By the data's, a row may be older than the latest version: then it ends where the next one begins.
A row of the same time as a version takes its place. Where a key has come back after it had gone, or the latest version
began later than its row's own time, the next one is valid from the run on that it came in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from dbt_incremental_dd.core.errors import QueryError
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.history.stored import KnownVersions, is_gone, is_open
from dbt_incremental_dd.logical import equality
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.engine import Branch, Measure
from dbt_incremental_dd.relation.keys import keys_of
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.trace.spark_reader import quote_name

_CAME, _WENT, _UNTIMED = "dd_came", "dd_went", "dd_untimed"
"""Of a key: rows that come and go, and those that come without a time."""
_TIME = "dd_row_time"
"""When the row that comes begins to be valid, as it says itself."""
_OPEN, _GONE = "dd_open", "dd_gone"
"""Of a version: whether it is open, and whether it says that the key is gone."""
_OPEN_FROM, _OPEN_TIME, _IS_GONE = "dd_open_from", "dd_open_time", "dd_is_gone"
"""The open version's beginning and its row's time, and whether it says that the key is gone."""
_BEFORE, _AFTER, _LAST_END = "dd_before", "dd_after", "dd_last_end"
"""The beginnings of the versions around the row's time, and the last end of those that are closed."""
_LATE, _ANCHOR, _START = "dd_late", "dd_anchor", "dd_start"
"""Whether the row is older than the open version; the version that it comes in or after; where its own begins."""
_IS_NEW, _IS_CLOSED, _IN_PLACE, _INSIDE = "dd_is_new", "dd_is_closed", "dd_in_place", "dd_inside"
"""Whether the row is a version, whether the open one ends with its key, whether the row takes the place of the version
that it is anchored to, and whether it begins while that one is valid."""
_NEW_END, _OLD_END, _OLD_CURRENT = "dd_new_end", "dd_old_end", "dd_old_current"
_NEW, _MARK = "dd_version_", "dd_mark_"
"""Before an added column of the new version, and of the one that says that a key is gone."""


@dataclass(frozen=True)
class Versions:
    """One run's change of a history with a key. ``at``: the run's time, in ms. ``model`` is for messages."""

    history: History
    query: tuple[str, ...]
    at: Time
    model: str

    def delta(self, change: Relation, stored: KnownVersions | None) -> Relation:
        """The history's delta for the query's, which is consolidated. Raises QueryError where a key has two rows, or a
        row has no time."""
        key = self.history.key
        keys = self._keys(change)
        came = change.filter(Expr(f"{DIFF} > 0")).extend([(_TIME, Expr(self._time))])
        row = [(_TIME, _TIME), *((_new(place), name) for place, name in enumerate(self.query))]
        fresh = came.select([*((name, name) for name in key), *row])
        wide = keys.lookup(fresh, key, [(name, name) for name, _ in row], of_groups=True)
        if stored is None:
            return self._first(wide)
        wide = wide.materialized()
        kept = stored.of(change.workspace, keys_of(wide, key))
        kept = kept.extend([(_OPEN, Expr(is_open(self.history))), (_GONE, Expr(is_gone(self.history)))]).materialized()
        return self._changed(self._judged(self._anchored(self._beside(wide, kept), kept)))

    @property
    def _time(self) -> str:
        """SQL: when a row of the query begins to be valid."""
        return f"CAST(({self.history.time}\n) AS TIMESTAMP)" if self.history.time else self._run_time

    @property
    def _run_time(self) -> str:
        return f"timestamp_millis({self.at}L)"

    def _keys(self, change: Relation) -> Relation:
        """Each key once, with what comes and goes of it."""
        is_untimed = f"{DIFF} > 0 AND {self._time} IS NULL" if self.history.time else "FALSE"
        measures = [
            Measure(_CAME, "sum", Expr(f"greatest({DIFF}, 0L)"), "BIGINT"),
            Measure(_WENT, "sum", Expr(f"greatest(-{DIFF}, 0L)"), "BIGINT"),
            Measure(_UNTIMED, "sum", Expr(f"CASE WHEN {is_untimed} THEN 1L ELSE 0L END"), "BIGINT"),
        ]
        keys = change.group_by(self.history.key, measures).once().localized()
        wrong = _some(keys.filter(Expr(f"{_CAME} > 1L OR {_UNTIMED} > 0L")))
        if wrong is not None and wrong[_UNTIMED]:
            raise self._error(
                wrong, f"has no time: {self.history.time} is NULL", "Leave the row out, or give it a time."
            )
        if wrong is not None:
            raise self._ambiguous(wrong)
        return keys

    def _first(self, wide: Relation) -> Relation:
        """Versions of keys of which nothing is stored."""
        wide = wide.extend([(_START, Expr(_TIME)), (_NEW_END, Expr(self.history.end))])
        wide = wide.extend(self._added(_NEW, begins=_START, ends=_NEW_END, updated=_TIME, gone="False"))
        return wide.unpivot([self._version(_NEW, _new, Expr("1L"))]).consolidate()

    def _beside(self, wide: Relation, kept: Relation) -> Relation:
        """The keys with what is known of their versions. Raises QueryError where a key has a row already."""
        begins, ends = (quote_name(self.history.names[role]) for role in ("from", "to"))

        def measure(name: str, function: Literal["min", "max"], condition: str, value: str) -> Measure:
            return Measure(name, function, Expr(f"CASE WHEN {condition} THEN {value} END"), "TIMESTAMP")

        facts = kept.lookup(wide, self.history.key, [(_TIME, _TIME)]).group_by(
            self.history.key,
            [
                measure(_OPEN_FROM, "max", _OPEN, begins),
                measure(_OPEN_TIME, "max", _OPEN, self._time),
                measure(_BEFORE, "max", f"{begins} <= {_TIME}", begins),
                measure(_AFTER, "min", f"{begins} > {_TIME}", begins),
                measure(_LAST_END, "max", f"NOT {_OPEN}", ends),
                Measure(_IS_GONE, "sum", Expr(f"CASE WHEN {_OPEN} AND {_GONE} THEN 1L ELSE 0L END"), "BIGINT"),
            ],
        )
        names = (_OPEN_FROM, _OPEN_TIME, _BEFORE, _AFTER, _LAST_END, _IS_GONE)
        wide = wide.lookup(facts.once(), self.history.key, [(name, name) for name in names], of_groups=True)
        wide = wide.update([(_IS_GONE, Expr(f"coalesce({_IS_GONE}, 0L) > 0L"))])
        if self.history.deletes != "keep":
            is_second = f"{_OPEN_FROM} IS NOT NULL AND NOT {_IS_GONE} AND {_WENT} = 0L AND {_CAME} > 0L"
            wrong = _some(wide.filter(Expr(is_second)))
            if wrong is not None:
                raise self._ambiguous(wrong)
        return wide

    def _anchored(self, wide: Relation, kept: Relation) -> Relation:
        """The keys with the version that the new row comes in or after: the open one, unless the row is late."""
        key, begins = self.history.key, quote_name(self.history.names["from"])
        is_late = f"coalesce({_TIME} < {_OPEN_TIME}, FALSE) AND NOT {_IS_GONE}" if self._mends else "FALSE"
        wide = wide.extend([(_LATE, Expr(is_late))])
        wide = wide.extend([(_ANCHOR, Expr(f"CASE WHEN {_LATE} THEN {_BEFORE} ELSE {_OPEN_FROM} END"))])
        anchors = kept.lookup(wide, key, [(_ANCHOR, _ANCHOR)]).filter(Expr(f"{begins} = {_ANCHOR}"))
        columns = [(_old(place), name) for place, name in enumerate(self._columns)]
        return wide.lookup(anchors, key, columns, of_groups=True)

    def _judged(self, wide: Relation) -> Relation:
        """What becomes of each key: whether and where a version begins, and what it does to the one before."""
        begins, ends = self._anchor("from"), self._anchor("to")
        wide = wide.extend([(_START, Expr(self._start))])
        is_valid = f"{begins} IS NOT NULL AND ({ends} <=> {self.history.end} OR {ends} > {_START})"
        judged = [
            (_IS_NEW, f"{_CAME} > 0L AND ({self._is_new(wide)})"),
            (_IS_CLOSED, self._is_closed),
            (_IN_PLACE, f"{begins} <=> {_START}"),
            (_INSIDE, f"coalesce({is_valid}, FALSE)"),
        ]
        return wide.extend([(name, Expr(sql)) for name, sql in judged])

    @property
    def _start(self) -> str:
        since_run = f"greatest({self._run_time}, {_OPEN_FROM}, {_LAST_END})"
        if not self.history.time:
            return since_run
        is_after_all = f"{_OPEN_FROM} IS NULL AND ({_LAST_END} IS NULL OR {_TIME} > {_LAST_END})"
        return (
            f"CASE WHEN {_LATE} OR {_TIME} > {_OPEN_FROM} OR ({is_after_all}) THEN {_TIME} "
            f"WHEN {_TIME} = {_OPEN_TIME} AND NOT {_IS_GONE} THEN {_OPEN_FROM} ELSE {since_run} END"
        )

    def _is_new(self, wide: Relation) -> str:
        """SQL: whether a row that comes is a version."""
        is_first = f"{_OPEN_FROM} IS NULL OR {_IS_GONE}"
        if self.history.time and not self.history.compared:
            is_later = f"{_OPEN_TIME} IS NULL OR {_TIME} > {_OPEN_TIME}"
            return "TRUE" if self.history.mends else f"{is_first} OR {is_later}"
        if not self.history.compared and self.history.deletes != "keep":
            return "TRUE"  # an open version is the row that the query had, and the row that comes is another one
        compared = self.history.compared or self.query
        types = {column.name: column.type for column in wide.schema}
        places = [place for place, name in enumerate(self.query) if name in compared]
        same = [equality.same(_new(place), _old(place), types[_new(place)]) for place in places]
        return f"{is_first} OR NOT ({' AND '.join(same)})"

    @property
    def _is_closed(self) -> str:
        """SQL: whether the open version ends because its key has gone."""
        goes = f"{_CAME} = 0L AND {_OPEN_FROM} IS NOT NULL AND NOT {_IS_GONE}"
        return "FALSE" if self.history.deletes == "keep" else goes

    def _changed(self, wide: Relation) -> Relation:
        """The versions that go and come. One that would end before it begins was never valid, and only goes."""
        end, run_time = self.history.end, self._run_time
        is_cut = f"{_IS_NEW} AND {_INSIDE} AND NOT {_IN_PLACE}"
        ends = f"CASE WHEN {_IN_PLACE} OR {_INSIDE} THEN {self._anchor('to')} WHEN {_LATE} THEN {_AFTER} ELSE {end} END"
        old_end = f"CASE WHEN {_IS_CLOSED} THEN {run_time} ELSE {_START} END"
        outputs = [(_NEW_END, ends), (_OLD_END, old_end), (_OLD_CURRENT, "FALSE")]
        wide = wide.extend([(name, Expr(sql)) for name, sql in outputs])
        updated = _TIME if self.history.time else _START
        wide = wide.extend(self._added(_NEW, begins=_START, ends=_NEW_END, updated=updated, gone="False"))
        ended = {self.history.names["to"]: _OLD_END, self.history.names.get("current", ""): _OLD_CURRENT}
        was = [(name, _old(place)) for place, name in enumerate(self._columns)]
        goes = f"{_IS_CLOSED} OR ({_IS_NEW} AND ({_IN_PLACE} OR {_INSIDE}))"
        stays = f"({is_cut}) OR ({_IS_CLOSED} AND {run_time} > {self._anchor('from')})"
        branches = [
            Branch(was, Expr(f"CASE WHEN {goes} THEN -1L ELSE 0L END")),
            Branch([(name, ended.get(name, own)) for name, own in was], _if(stays)),
            self._version(_NEW, _new, _if(_IS_NEW)),
        ]
        if self.history.deletes == "record":
            since = f"greatest({run_time}, {_LAST_END})"
            wide = wide.extend(self._added(_MARK, begins=since, ends=end, updated=run_time, gone="True"))
            branches.append(self._version(_MARK, _old, _if(_IS_CLOSED)))
        return wide.unpivot(branches).consolidate()

    def _added(self, prefix: str, *, begins: str, ends: str, updated: str, gone: str) -> list[tuple[str, Expr]]:
        """A version's added columns. Its id is that of dbt's snapshots: a digest of the key and the row's time."""
        parts = [*map(quote_name, self.history.key), updated]
        id = " || '|' || ".join(f"coalesce(CAST({part} AS STRING), '')" for part in parts)
        values = {
            "id": f"md5({id})",
            "updated": updated,
            "from": begins,
            "to": ends,
            "current": f"{ends} <=> {self.history.end}",
            "deleted": f"'{gone}'",
        }
        return [(prefix + role, Expr(values[role])) for role, _ in self.history.columns]

    def _version(self, prefix: str, row: Callable[[int], str], diff: Expr) -> Branch:
        own = [(name, row(place)) for place, name in enumerate(self.query)]
        return Branch([*own, *((name, prefix + role) for role, name in self.history.columns)], diff)

    @property
    def _columns(self) -> tuple[str, ...]:
        """The query's columns and those that are added."""
        return (*self.query, *(name for _, name in self.history.columns))

    def _anchor(self, role: str) -> str:
        """A column of the version that the new row comes in or after."""
        return _old(self._columns.index(self.history.names[role]))

    @property
    def _mends(self) -> bool:
        return self.history.mends and bool(self.history.time)

    def _ambiguous(self, key: dict[str, Any]) -> QueryError:
        return self._error(key, "has more than one row", "A key's row is one: correct unique_key, or the query.")

    def _error(self, row: dict[str, Any], wrong: str, remedy: str) -> QueryError:
        shown = ", ".join(f"{name} = {'NULL' if row[name] is None else row[name]}" for name in self.history.key)
        return QueryError(
            f"{self.model}: its history's key ({shown}) {wrong}", f"{remedy} Nothing of this run is stored."
        )


def _new(place: int) -> str:
    return f"dd_new_{place}"


def _old(place: int) -> str:
    return f"dd_old_{place}"


def _if(condition: str) -> Expr:
    """1 or 0."""
    return Expr(f"CASE WHEN {condition} THEN 1L ELSE 0L END")


def _some(rows: Relation) -> dict[str, Any] | None:
    """One of the rows; None if there is none."""
    found = rows.first((), 1).localized(1).table
    return found.arrow.to_pylist()[0] if found is not None and found.num_rows else None
