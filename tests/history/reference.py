"""A history kept row by row in Python: what the engine's has to be after each run. It knows no SQL and no deltas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

Row = tuple[Any, ...]
FAR = datetime(9999, 12, 31, tzinfo=UTC)


def moment(ms: int) -> datetime:
    """A time of a run as a timestamp."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


@dataclass(frozen=True)
class Version:
    """``end`` is None while it is valid; ``time`` is what its row says."""

    row: Row
    begin: datetime
    end: datetime | None = None
    time: datetime | None = None
    is_mark: bool = False


@dataclass
class OfRows:
    """Equal rows are one; of several, those that came last go first."""

    open: dict[Row, list[datetime]] = field(default_factory=dict)
    closed: list[Version] = field(default_factory=list)

    def run(self, rows: Iterable[Row], at: datetime) -> None:
        """What the query has now."""
        counts = Counter(rows)
        for row in {*counts, *self.open}:
            begins = self.open.setdefault(row, [])
            while len(begins) < counts[row]:
                begins.append(at)
            while len(begins) > counts[row]:
                self.closed.append(Version(row, begins.pop(), at))

    @property
    def versions(self) -> list[Version]:
        """All of them."""
        return [*self.closed, *(Version(row, begin) for row, begins in self.open.items() for begin in begins)]


@dataclass
class ByKey:
    """``key`` and ``time`` pick from a row, ``time`` perhaps nothing; ``compared`` are places."""

    key: Callable[[Row], Any]
    time: Callable[[Row], datetime] | None = None
    compared: tuple[int, ...] = ()
    mends: bool = True
    deletes: str = "close"
    kept: dict[Any, list[Version]] = field(default_factory=dict)
    now: dict[Any, Row] = field(default_factory=dict)

    def run(self, rows: Iterable[Row], at: datetime) -> None:
        """What the query has now; only keys whose row is another one are looked at."""
        new = {self.key(row): row for row in rows}
        for key in {*new, *self.now}:
            if key not in new:
                self._gone(self.kept[key], at)
            elif new[key] != self.now.get(key):
                self._came(self.kept.setdefault(key, []), new[key], at)
        self.now = new

    @property
    def versions(self) -> list[Version]:
        """All of them."""
        return [version for versions in self.kept.values() for version in versions]

    def _gone(self, versions: list[Version], at: datetime) -> None:
        last = self._open(versions)
        if self.deletes == "keep" or last is None or last.is_mark:
            return
        versions.remove(last)
        if last.begin < at:
            versions.append(replace(last, end=at))
        if self.deletes == "record":
            begin = max([at, *(version.end for version in versions if version.end)])
            versions.append(Version(last.row, begin, time=at, is_mark=True))

    def _came(self, versions: list[Version], row: Row, at: datetime) -> None:
        last = self._open(versions)
        time = self.time(row) if self.time else at
        if last is None:
            over = max((version.end for version in versions if version.end), default=None)
            begin = time if over is None or time > over else max(at, over)
            versions.append(Version(row, begin, time=time))
            return
        if last.is_mark:
            self._follow(versions, last, row, time, begin=time if time > last.begin else max(at, last.begin))
        elif self.time is None:
            places = self.compared or range(len(row))
            if any(row[place] != last.row[place] for place in places):
                self._follow(versions, last, row, time, begin=at)
        elif last.time is None or time > last.time:
            self._follow(versions, last, row, time, begin=time if time > last.begin else max(at, last.begin))
        elif self.mends and time == last.time:
            versions[versions.index(last)] = replace(last, row=row)
        elif self.mends:
            self._mend(versions, row, time)

    def _follow(self, versions: list[Version], last: Version, row: Row, time: datetime, begin: datetime) -> None:
        versions.remove(last)
        if begin > last.begin:
            versions.append(replace(last, end=begin))
        versions.append(Version(row, begin, time=time))

    def _mend(self, versions: list[Version], row: Row, time: datetime) -> None:
        """A row that comes late goes where its time is."""
        before = [version for version in versions if version.begin <= time]
        around = max(before, key=lambda version: version.begin, default=None)
        after = min(version.begin for version in versions if version.begin > time)
        if around is not None and around.begin == time:
            versions[versions.index(around)] = replace(around, row=row, time=time)
        elif around is not None and (around.end is None or around.end > time):
            versions.remove(around)
            versions += [replace(around, end=time), Version(row, time, around.end, time)]
        else:
            versions.append(Version(row, time, after, time))

    def _open(self, versions: list[Version]) -> Version | None:
        return next((version for version in versions if version.end is None), None)
