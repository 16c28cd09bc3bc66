"""The session's time zone on the driver: local times of moments, and moments of local times.

A zone's rules come from another copy of the time zone database than Spark's. So a zone with rules is one of those that
have long been settled, in years in which all copies agree.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.plain_text import Moments, Unclear
from dbt_incremental_dd.core.types import DATE, TIMESTAMP, TIMESTAMP_NTZ
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import require_all

_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu"})
_OFFSET = re.compile(r"([+-])(0\d|1[0-7]):([0-5]\d)", re.ASCII)
SETTLED = frozenset(
    {
        *("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Phoenix"),
        *("Europe/London", "Europe/Paris", "Europe/Berlin", "Europe/Madrid", "Europe/Rome", "Europe/Amsterdam"),
        *("Europe/Brussels", "Europe/Vienna", "Europe/Zurich", "Europe/Stockholm", "Europe/Copenhagen"),
        *("Asia/Tokyo", "Asia/Singapore", "Asia/Kolkata", "Asia/Shanghai", "Asia/Hong_Kong", "Asia/Dubai"),
        *("Australia/Sydney", "Australia/Melbourne", "Pacific/Auckland"),
    }
)
_SETTLED_FROM = datetime.datetime(2000, 1, 2, tzinfo=datetime.UTC)
_SETTLED_UNTIL = datetime.datetime(2037, 12, 30, tzinfo=datetime.UTC)
_NAIVE, _ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
_FIRST, _LAST = datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)
_FIRST_DAY, _LAST_DAY = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)


def is_fixed(zone: str) -> bool:
    """Whether all days have 24 hours in the zone."""
    return _offset(zone) is not None


def local(moments: Value, zone: str) -> Value:
    """What clocks show at these moments, as TIMESTAMP_NTZ. Raises NotExact."""
    if moments.type == TIMESTAMP_NTZ:
        return within(moments)
    if moments.type != TIMESTAMP:
        raise NotExact
    within(moments)
    offset = _offset(zone)
    if offset is not None:
        naive = pc.cast(pc.cast(moments.data, pa.int64()), _NAIVE)
        return Value(pc.add(naive, pa.scalar(offset)) if offset else naive, TIMESTAMP_NTZ)
    _require_settled(moments, zone)
    return Value(pc.local_timestamp(pc.cast(moments.data, pa.timestamp("us", zone))), TIMESTAMP_NTZ)


def moment(times: Value, zone: str) -> Value:
    """When clocks show these local times, as TIMESTAMP; not where that never is, or is twice. Raises NotExact."""
    offset = _offset(zone)
    within(times)
    if offset is not None:
        shifted = pc.subtract(times.data, pa.scalar(offset)) if offset else times.data
        return Value(pc.cast(pc.cast(shifted, pa.int64()), _ZONED), TIMESTAMP)
    if zone not in SETTLED:
        raise NotExact
    found = Value(pc.cast(pc.assume_timezone(times.data, zone), _ZONED), TIMESTAMP)
    _require_settled(found, zone)
    return found


def moments_in(zone: Callable[[], str]) -> Moments:
    """The moments of local times in a zone, one by one. ``zone`` is asked for with the first one."""
    known: list[str] = []

    def moment(time: datetime.datetime) -> datetime.datetime:
        if not known:
            known.append(zone())
        offset = _offset(known[0])
        if offset is not None:
            return (time - offset).replace(tzinfo=datetime.UTC)
        return _settled_moment(time, known[0])

    return moment


def _settled_moment(time: datetime.datetime, zone: str) -> datetime.datetime:
    """Raises Unclear where clocks never show it, or twice, or another copy of the zone's rules may say otherwise."""
    try:
        found = time.replace(tzinfo=zoneinfo.ZoneInfo(zone)) if zone in SETTLED else None
    except zoneinfo.ZoneInfoNotFoundError:
        found = None
    if found is None or found.utcoffset() != found.replace(fold=1).utcoffset():
        raise Unclear(time.isoformat())
    moment = found.astimezone(datetime.UTC)
    if not _SETTLED_FROM <= moment <= _SETTLED_UNTIL:
        raise Unclear(time.isoformat())
    return moment


def days(value: Value, zone: str) -> Value:
    """The date of a date or a moment, as CAST has it. Raises NotExact."""
    if value.type == DATE:
        return within(value)
    return Value(pc.cast(local(value, zone).data, pa.date32()), DATE)


def within(value: Value) -> Value:
    """Itself, of dates and times of the years 1 to 9999; not of their first and last moments."""
    first, last = (_FIRST_DAY, _LAST_DAY) if value.type == DATE else (_FIRST, _LAST)
    data = value.data
    if value.type == TIMESTAMP:
        data = pc.cast(pc.cast(data, pa.int64()), _NAIVE)
    bounds = pa.scalar(first, data.type), pa.scalar(last, data.type)
    require_all(pc.and_(pc.greater_equal(data, bounds[0]), pc.less_equal(data, bounds[1])))
    return value


def _offset(zone: str) -> datetime.timedelta | None:
    """From UTC, of a zone in which it never changes."""
    if zone in _UTC:
        return datetime.timedelta()
    found = _OFFSET.fullmatch(zone)
    if found is None:
        return None
    offset = datetime.timedelta(hours=int(found[2]), minutes=int(found[3]))
    return -offset if found[1] == "-" else offset


def _require_settled(moments: Value, zone: str) -> None:
    if zone not in SETTLED:
        raise NotExact
    bounds = pa.scalar(_SETTLED_FROM, _ZONED), pa.scalar(_SETTLED_UNTIL, _ZONED)
    require_all(pc.and_(pc.greater_equal(moments.data, bounds[0]), pc.less_equal(moments.data, bounds[1])))
