"""Payments as Debezium sends them from a database's log: inserts, status changes, refunds, deletes, tombstones,

and events that are delivered twice.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

_Row = dict[str, Any]


class Feed:
    """One database table ``payments``, changed in transactions of a few rows. What is written is the same each time;
    files that are there stay as they are."""

    def __init__(self, folder: Path, size: int = 20_000) -> None:
        self._folder = folder / "payments"
        self._size = size
        self._rng = random.Random(99)
        self._rows: dict[int, _Row] = {}
        self._next_id = 1
        self._lsn = 1000
        self._recent: list[str] = []

    def start(self) -> dict[str, int]:
        """The connector's first snapshot: every row is read."""
        events = [self._event("r", None, self._new_row()) for _ in range(self._size)]
        return self._write("0000-snapshot", events)

    def advance(self, round: int) -> dict[str, int]:
        """A few hundred changes."""
        events: list[str] = list(self._recent[-20:])  # delivered again
        for _ in range(300):
            events += self._change()
        return self._write(f"{round:04d}", events)

    def _change(self) -> list[str]:
        kind = self._rng.random()
        if kind < 0.4 or not self._rows:
            return [self._event("c", None, self._new_row())]
        id = self._rng.choice(list(self._rows))
        before = dict(self._rows[id])
        if kind < 0.9:
            self._rows[id]["status"] = self._rng.choice(["captured", "refunded", "failed"])
            return [self._event("u", before, self._rows[id])]
        del self._rows[id]
        return [self._event("d", before, None), "null"]

    def _new_row(self) -> _Row:
        id = self._next_id
        self._next_id += 1
        self._rows[id] = {
            "id": id,
            "merchant": f"m{int(self._rng.paretovariate(0.7)) % 200}",
            "amount": f"{self._rng.randint(100, 90_000) / 100:.2f}",
            "status": self._rng.choice(["authorized", "captured", "captured"]),
        }
        return self._rows[id]

    def _event(self, op: str, before: _Row | None, after: _Row | None) -> str:
        self._lsn += 8
        source = {
            "connector": "postgresql",
            "table": "payments",
            "lsn": self._lsn,
            "ts_ms": 1_700_000_000_000 + self._lsn,
        }
        text = json.dumps({"before": before, "after": after, "op": op, "ts_ms": source["ts_ms"], "source": source})
        self._recent.append(text)
        return text

    def _write(self, name: str, events: list[str]) -> dict[str, int]:
        self._folder.mkdir(parents=True, exist_ok=True)
        path, temporary = self._folder / f"{name}.json", self._folder / f".{name}.tmp"
        if not path.exists():
            temporary.write_text("".join(f"{event}\n" for event in events))
            os.replace(temporary, path)
        return {"events": len(events)}
