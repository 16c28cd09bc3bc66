"""Processes that run, compact, read and follow the same collections: ``python -m tests.faults.racer ROLE FOLDER``.

Money moves between accounts and is never made or lost, so half a change, or a mix of times, shows in any sum. Each
process goes on until ``FOLDER/stop`` is there, and then prints what it has seen as JSON.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import dbt_incremental_dd
from dbt_incremental_dd.core.errors import FrontierError
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.runtime.vacuum import vacuum
from dbt_incremental_dd.sources.config import SourceSpec, parse_source
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACCOUNTS = 60
TOTAL = ACCOUNTS * 1_000
MODELS = {
    "held": "SELECT id, branch, amount FROM s.accounts",
    "branches": "SELECT branch, count(*) AS n, sum(amount) AS amount FROM s.accounts GROUP BY branch",
    "total": "SELECT sum(amount) AS amount FROM m.branches",
    "paired": "SELECT h.id, h.amount, b.amount AS of_branch FROM m.held h JOIN m.branches b ON h.branch = b.branch",
}
_RETAINED = 2_000
_STILL_READ = 60_000
"""Milliseconds."""


class Bank:
    """The source's files; each one is a transfer, whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "in"
        self._folder.mkdir(parents=True)
        self._amounts = dict.fromkeys(range(ACCOUNTS), 1_000)
        self._position = 0
        self._rng = random.Random(1)
        self._write(list(self._amounts))

    def transfer(self) -> None:
        """Some accounts' money goes to others."""
        for _ in range(3):
            one, other = self._rng.sample(range(ACCOUNTS), 2)
            amount = self._rng.randint(1, 100)
            self._amounts[one] -= amount
            self._amounts[other] += amount
            self._write([one, other])

    def _write(self, ids: list[int]) -> None:
        self._position += 1
        records = [{"id": i, "branch": i % 5, "amount": self._amounts[i], "pos": self._position} for i in ids]
        made = self._folder / f".{self._position}"
        made.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        made.rename(self._folder / f"{self._position:06}.json")


class Racer:
    """One process. ``seen`` counts what it has done, ``wrong`` tells what must not be."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._storage = Storage(str(folder / "state"))
        self._database = dbt_incremental_dd.open(str(folder / "state"))
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._read: dict[tuple[str, Time], str] = {}
        self._spark: SparkSession | None = None

    def go_on(self, act: Callable[[], None]) -> None:
        """Until it is told to stop."""
        while not (self._folder / "stop").exists() and len(self.wrong) < 5:
            act()
            self.seen["rounds"] += 1

    @property
    def spark(self) -> SparkSession:
        """A session on the server that all share."""
        if self._spark is None:
            self._spark = open_session(str(self._folder / "state"), {})
            self._spark.sql("CREATE DATABASE IF NOT EXISTS m")
        return self._spark

    def run(self) -> None:
        """All models, brought to what there is."""
        run = Run(LazySession.of(self.spark), self._storage, "racer", None, lambda line: None)
        for name in MODELS:
            run.model(request(self._folder, name))
        with (self._folder / "rounds").open("a") as rounds:
            rounds.write(".")

    def compact(self) -> None:
        """With seconds of history, so that readers and compaction meet."""
        for _ in compact(LazySession.of(self.spark), self._storage, retain_history=_RETAINED):
            self.seen["compacted"] += 1
        for _ in vacuum(self._storage, older_than=_STILL_READ):
            pass
        time.sleep(0.5)

    def read(self) -> None:
        """Every collection as of one time that all have, and again as of a time that was read before."""
        names = ["s.accounts", *(f"m.{name}" for name in MODELS)]
        collections = {name: self._database[name] for name in names}
        t = min(collection.frontiers.last for collection in collections.values())
        try:
            tables = {name: collection.as_of(t) for name, collection in collections.items()}
            for name in names:
                self._as_before(name, t, tables[name])
            for name, then in list(self._read)[-8:]:
                self._as_before(name, then, self._database[name].as_of(then))
        except FrontierError:
            self.seen["too late"] += 1
            self._read.clear()
            return
        for name in ("s.accounts", "m.held", "m.branches", "m.total", "m.paired"):
            if _sum(tables[name]) != TOTAL:
                self.wrong.append(f"{name} as of {t}: {_sum(tables[name])}")
        self.seen["read"] += 1

    def _as_before(self, name: str, t: Time, table: pa.Table) -> None:
        found = hashlib.sha256(repr(sorted(map(repr, table.to_pylist()))).encode()).hexdigest()
        if self._read.setdefault((name, t), found) != found:
            self.wrong.append(f"{name} as of {t} is not what it was")

    def query(self) -> None:
        """The relations that people query."""
        for name in MODELS:
            (found,) = self.spark.sql(f"SELECT sum(amount) FROM m.{name}").collect()[0]
            if found != TOTAL:
                self.wrong.append(f"the relation m.{name} sums up to {found}")
        self.seen["queried"] += 1

    def follow(self) -> None:
        """What is kept up to date by the changes alone has the same sum after each batch."""
        collection = self._database["m.held"]
        rows: Counter[tuple[int, int]] = Counter()
        at = -1

        def step() -> None:
            nonlocal at
            last = collection.frontiers.last
            try:
                changes = collection.changes(at, last) if at >= 0 else collection.as_of(last)
            except FrontierError:
                self.seen["too late"] += 1
                rows.clear()
                at = -1
                return
            for row in changes.to_pylist():
                rows[row["id"], row["amount"]] += row["dd_diff"]
            at = last
            self.seen["changes"] += changes.num_rows
            total = sum(amount * n for (_, amount), n in rows.items())
            if total != TOTAL or min(rows.values()) < 0:
                self.wrong.append(f"changes of m.held up to {at} sum up to {total}")
            time.sleep(0.05)

        self.go_on(step)


def _sum(table: pa.Table) -> int:
    return int(pc.sum(pc.multiply(table["amount"].cast(pa.int64()), table["dd_diff"])).as_py() or 0)


def source(folder: Path) -> SourceSpec:
    """The accounts, by their latest balance."""
    settings = {"path": "in", "format": "json", "envelope": "upsert", "key": "id", "order_by": "pos"}
    columns = {"id": "bigint", "branch": "int", "amount": "bigint", "pos": "bigint"}
    return parse_source("s.accounts", "s.accounts", settings, columns, str(folder))


def request(folder: Path, name: str) -> ModelRequest:
    """One of the models."""
    inputs: dict[str, Any] = {"s.accounts": source(folder), **{f"m.{other}": "model" for other in MODELS}}
    return ModelRequest(f"m.{name}", f"`m`.`{name}`", MODELS[name], ModelConfig(), inputs=inputs)


def main() -> int:
    """One role."""
    role, racer = sys.argv[1], Racer(Path(sys.argv[2]))
    if role == "once":
        racer.run()
    elif role == "follow":
        racer.follow()
    else:
        racer.go_on(getattr(racer, role))
    print(json.dumps({"role": role, "seen": racer.seen, "wrong": racer.wrong}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
