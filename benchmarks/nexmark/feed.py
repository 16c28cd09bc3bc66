"""The events of an auction house as feeds of files, after Nexmark (Tucker, Tufte, Papadimos, Maier: NEXMark, 2008).

Of 50 events 1 registers a person, 3 open auctions and 46 bid. Half of the bids go to one of the hot auctions and a
quarter come from hot bidders. Some events are late. Bids are only ever appended; people move and leave, auctions are
changed and withdrawn (records of a key, ``op = 'd'`` where it goes); the side table is written anew.
"""

from __future__ import annotations

import csv
import random
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

EVENTS = 1_000_000
"""Events of the first load at scale 1."""

_START = datetime(2024, 7, 15, 22, tzinfo=UTC)
_BETWEEN = timedelta(milliseconds=100)
_FIRST_ID = 1_000
_OPEN_AUCTIONS = 100
_ACTIVE_PEOPLE = 1_000
_STAMP = pa.timestamp("us", "UTC")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_CITIES = (("Portland", "or"), ("Boise", "id"), ("San Jose", "ca"), ("Phoenix", "az"), ("Seattle", "wa"))
_TYPES = {"id": pa.int64(), "text": pa.string(), "time": _STAMP, "number": pa.int32()}
_COLUMNS = {
    "person": "id id, name text, email text, card text, city text, state text, date_time time, extra text, "
    "op text, seq number",
    "auction": "id id, item_name text, description text, initial_bid id, reserve id, date_time time, expires time, "
    "seller id, category id, extra text, op text, seq number",
    "bid": "auction id, bidder id, price id, channel text, url text, date_time time, arrived time, extra text",
}
SCHEMAS = {
    table: pa.schema([(name, _TYPES[kind]) for name, kind in map(str.split, columns.split(", "))])
    for table, columns in _COLUMNS.items()
}

_Row = dict[str, Any]
_Rows = dict[int, _Row]


class Feed:
    """Writes the first load at once; the house goes on from there."""

    def __init__(self, folder: Path, scale: float, share: float = 0.001, seed: int = 1) -> None:
        self._folder = folder
        self._rng = random.Random(seed)
        self._events = 0
        self._people: _Rows = {}
        self._auctions: _Rows = {}
        self._last = {"person": _FIRST_ID - 1, "auction": _FIRST_ID - 1}
        self._a_round = max(50, int(EVENTS * scale * share))
        shutil.rmtree(folder, ignore_errors=True)
        self._write(0, self._happen(max(50, int(EVENTS * scale))))

    def advance(self, round: int) -> dict[str, int]:
        """New events, and changes of about as many people and auctions as came; the number of records by table."""
        people = self._changes(self._people, self._a_round // 50, _moved)
        auctions = self._changes(self._auctions, self._a_round * 3 // 50, self._changed)
        records = self._happen(self._a_round)
        records["person"] += people
        records["auction"] += auctions
        for row in (*records["person"], *records["auction"]):
            row["seq"] = round
        self._write(round, records)
        return {name: len(rows) for name, rows in records.items()}

    def _changes(self, rows: _Rows, count: int, change: Callable[[_Row], _Row]) -> list[_Row]:
        """Records of rows that are there: a third of them goes, the others change."""
        made = []
        for key in self._rng.sample(sorted(rows), min(count, len(rows) // 2)):
            gone = self._rng.random() < 0.3
            made.append({**(rows.pop(key) if gone else change(rows[key])), "op": "d" if gone else "u"})
        return made

    def _happen(self, events: int) -> dict[str, list[_Row]]:
        records: dict[str, list[_Row]] = {"person": [], "auction": [], "bid": []}
        for _ in range(events):
            at = _START + self._events * _BETWEEN
            place = self._events % 50
            if place == 0:
                records["person"].append(self._person(at))
            elif place <= 3:
                records["auction"].append(self._auction(at))
            else:
                records["bid"].append(self._bid(at))
            self._events += 1
        return records

    def _text(self) -> str:
        return "".join(self._rng.choices("abcdefgh ", k=self._rng.randint(0, 40)))

    def _next(self, kind: str) -> int:
        self._last[kind] += 1
        return self._last[kind]

    def _person(self, at: datetime) -> _Row:
        key = self._next("person")
        city, state = self._rng.choice(_CITIES)
        name = f"{self._rng.choice(('Ada', 'Ben', 'Cem', 'Dua'))} {self._rng.choice(('Ash', 'Elm', 'Oak'))}"
        card = f"{self._rng.randrange(10**16):016d}"
        row = {"id": key, "name": name, "email": f"p{key}@example.org", "card": card, "city": city, "state": state}
        self._people[key] = {**row, "date_time": at, "extra": self._text(), "op": "u", "seq": 0}
        return self._people[key]

    def _auction(self, at: datetime) -> _Row:
        key = self._next("auction")
        initial = self._price()
        self._auctions[key] = {
            "id": key, "item_name": f"item {key % 97}", "description": self._text(), "initial_bid": initial,
            "reserve": initial + self._price(), "date_time": at, "seller": self._someone(),
            "expires": at + timedelta(seconds=self._rng.randint(1, 300)), "category": 10 + self._rng.randrange(5),
            "extra": self._text(), "op": "u", "seq": 0,
        }  # fmt: skip
        return self._auctions[key]

    def _bid(self, at: datetime) -> _Row:
        last = max(self._last["auction"], _FIRST_ID)
        hot = self._rng.random() < 0.5
        auction = last // 100 * 100 if hot else self._rng.randint(max(_FIRST_ID, last - _OPEN_AUCTIONS), last)
        number = self._rng.randrange(10_000)
        url = f"https://www.example.com/{number % 7}/{number % 11}/{number % 13}/item.htm?query=1"
        if self._rng.random() < 0.5:
            channel = self._rng.choice(_CHANNELS)
        else:
            channel = f"channel-{number}"
            url += f"&channel_id={number}" if self._rng.random() < 0.9 else ""
        late = timedelta(seconds=self._rng.randint(1, 30)) if self._rng.random() < 0.03 else timedelta()
        return {
            "auction": auction, "bidder": self._someone(), "price": self._price(), "channel": channel, "url": url,
            "date_time": at - late, "arrived": at + timedelta(milliseconds=self._rng.randint(0, 3_000)),
            "extra": self._text(),
        }  # fmt: skip

    def _someone(self) -> int:
        last = max(self._last["person"], _FIRST_ID)
        if self._rng.random() < 0.25:
            return last // 100 * 100
        return self._rng.randint(max(_FIRST_ID, last - _ACTIVE_PEOPLE), last)

    def _price(self) -> int:
        return round(10 ** (self._rng.random() * 6) * 100)

    def _changed(self, auction: _Row) -> _Row:
        auction["expires"] += timedelta(seconds=self._rng.randint(-60, 300))
        auction["category"] = 10 + self._rng.randrange(5)
        return auction

    def _write(self, number: int, records: dict[str, list[_Row]]) -> None:
        for name, rows in records.items():
            folder = self._folder / name
            folder.mkdir(parents=True, exist_ok=True)
            if rows:
                pq.write_table(pa.Table.from_pylist(rows, SCHEMAS[name]), folder / f"{number:05d}.parquet")
        side = self._folder / "side"
        side.mkdir(exist_ok=True)
        with (side / "side.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["key", "value"])
            lines.writerows((key, f"value {(key * 7 + key % (number + 2)) % 1000}") for key in range(0, 10_000, 3))


def _moved(person: _Row) -> _Row:
    cities = [city for city, _ in _CITIES]
    person["city"], person["state"] = _CITIES[(cities.index(person["city"]) + 1) % len(_CITIES)]
    return person
