"""Input of every envelope in small steps, and what the tables hold after each: a replay that knows no Spark."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from dbt_incremental_dd.sources.config import SourceSpec, parse_source

Row = tuple[Any, ...]
_SETTINGS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "visits": ({"envelope": "append"}, {"id": "bigint", "k": "int", "v": "int"}),
    "lines": ({"envelope": "append", "path": "in/lines/log.jsonl"}, {"id": "bigint", "k": "int", "v": "int"}),
    "accounts": (
        {"envelope": "upsert", "key": "id", "order_by": "pos", "deleted_when": "v IS NULL"},
        {"id": "bigint", "k": "int", "v": "int", "pos": "bigint"},
    ),
    "orders": ({"envelope": "debezium", "key": "id"}, {"id": "bigint", "k": "int", "v": "int"}),
    "moves": ({"envelope": "changelog", "diff_column": "n"}, {"id": "bigint", "k": "int", "v": "int", "n": "int"}),
    "prices": ({"envelope": "snapshot"}, {"id": "bigint", "k": "int", "v": "int"}),
}
FIRST = 400
"""Records of each source in the first step; of the accounts more, so that their pages are worth an index."""
MANY = 36_000
LATER = 12
"""In each later one."""


def sources(folder: Path) -> dict[str, SourceSpec]:
    """The sources whose files lie under ``folder``, as ``s.<name>``."""
    found = {}
    for name, (settings, columns) in _SETTINGS.items():
        meta = {"path": f"in/{name}", "format": "json", **settings}
        found[name] = parse_source(f"s.{name}", f"s.{name}", meta, columns, str(folder))
    return found


class Feed:
    """The steps, each made from its number alone; ``tables`` are the sources' contents after the last one.

    What another process has written stays as it is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mark = folder / "in" / "steps"
        self.written = int(self._mark.read_text()) if self._mark.exists() else 0
        self._step = 0
        self._next = 0
        self.tables: dict[str, Counter[Row]] = {name: Counter() for name in _SETTINGS}
        self._keyed: dict[str, dict[int, Row]] = {"accounts": {}, "orders": {}, "prices": {}}

    def to(self, step: int) -> None:
        """So many steps."""
        while self._step < step:
            rng = random.Random(self._step)
            count = LATER if self._step else FIRST
            for name in _SETTINGS:
                getattr(self, f"_{name}")(rng, MANY if count == FIRST and name == "accounts" else count)
            self._step += 1
            if self._step > self.written:
                self.written = self._step
                self._mark.write_text(str(self._step))
        for name, rows in self._keyed.items():
            self.tables[name] = Counter(rows.values())

    def _row(self, rng: random.Random) -> Row:
        self._next += 1
        return self._next, rng.choice([None, *range(8)]), rng.randint(-9, 99)

    def _write(self, name: str, records: list[Any], file: str = "", mode: str = "w") -> None:
        path = self._folder / "in" / name
        path.mkdir(parents=True, exist_ok=True)
        if self._step >= self.written:
            with (path / (file or f"{self._step:05}.json")).open(mode) as target:
                target.write("".join(f"{json.dumps(record)}\n" for record in records))

    def _visits(self, rng: random.Random, count: int) -> None:
        rows = [self._row(rng) for _ in range(count)]
        rows += rows[:2]
        self.tables["visits"].update(rows)
        self._write("visits", [_record("id k v", row) for row in rows])

    def _lines(self, rng: random.Random, count: int) -> None:
        rows = [self._row(rng) for _ in range(count)]
        self.tables["lines"].update(rows)
        self._write("lines", [_record("id k v", row) for row in rows], "log.jsonl", "a")

    def _accounts(self, rng: random.Random, count: int) -> None:
        known, records = self._keyed["accounts"], []
        for _ in range(count):
            id, k, v = self._row(rng)
            id = _some(rng, known, id)
            gone = id in known and rng.random() < 0.3
            row = (id, k, None if gone else v, self._next)
            records.append(_record("id k v pos", row))
            known.pop(id, None)
            if not gone:
                known[id] = row
        self._write("accounts", records)

    def _orders(self, rng: random.Random, count: int) -> None:
        known, events = self._keyed["orders"], []
        for _ in range(count):
            id, k, v = self._row(rng)
            id = _some(rng, known, id)
            before = known.get(id)
            after = None if before and rng.random() < 0.4 else (id, k, v)
            event = {"op": "d" if after is None else "u" if before else "c", "ts_ms": self._next}
            event["source"] = {"lsn": self._next, "ts_ms": self._next}
            for side, row in (("before", before), ("after", after)):
                event[side] = _record("id k v", row) if row else None
            events.append(event)
            known.pop(id, None)
            if after:
                known[id] = after
        self._write("orders", [*events, events[-1]])

    def _moves(self, rng: random.Random, count: int) -> None:
        table, records = self.tables["moves"], []
        for _ in range(count):
            row = self._row(rng)
            table[row] += 2
            records.append((*row, 2))
        for row in rng.sample(sorted(table, key=str), min(count // 2, len(table))):
            table[row] -= 1
            records.append((*row, -1))
        self.tables["moves"] = +table
        self._write("moves", [_record("id k v n", record) for record in records])

    def _prices(self, rng: random.Random, count: int) -> None:
        known = self._keyed["prices"]
        for _ in range(count):
            id, k, v = self._row(rng)
            id = _some(rng, known, id)
            known[id] = (id, k, v)
        for id in rng.sample(sorted(known), min(3, len(known))):
            del known[id]
        self._write("prices", [_record("id k v", row) for row in known.values()], "all.json")


def _some(rng: random.Random, known: dict[int, Row], new: int) -> int:
    """A key: mostly a new one, at times one of the oldest."""
    return rng.choice(list(islice(known, 50))) if known and rng.random() < 0.3 else new


def _record(names: str, row: Row) -> dict[str, Any]:
    return dict(zip(names.split(), row, strict=True))
