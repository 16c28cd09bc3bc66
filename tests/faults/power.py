"""A small project on a machine that fails: power cuts, lost log entries, flipped bits, records that come again.

Each trial goes on from a whole state, harms it, runs, and compares. A run that says it went well has to be exact.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dbt_incremental_dd
from dbt_incremental_dd.core import failpoints
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.foreign import is_foreign
from dbt_incremental_dd.duck import connections
from dbt_incremental_dd.parquet import checksum, page_index
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime import compile
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.storage import durable
from dbt_incremental_dd.trace import log
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {
    "sums": "SELECT k, sum(v) AS v, count(*) AS n, max(id) AS last FROM s.t GROUP BY k",
    "above": "SELECT k, v FROM {m}.sums WHERE n > 1",
}
COLUMNS = {"id": "bigint", "k": "int", "v": "int", "pos": "bigint"}
SETTINGS = {
    "path": "in",
    "format": "json",
    "envelope": "upsert",
    "key": "id",
    "order_by": "pos",
    "deleted_when": "v < 0",
}
_KEYS = 12


class PowerCut(BaseException):
    """The machine stops here."""


class Machine:
    """The project, and what its disk has for certain."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        self._spark = spark
        self._folder = folder
        self._state = folder / "state"
        self._storage = Storage(str(self._state))
        self._rng = random.Random(seed)
        self._schema = f"p{seed}_{os.getpid()}"
        (folder / "in").mkdir()
        self._source = parse_source("s.t", "s.t", SETTINGS, COLUMNS, str(folder))
        self._position = 0
        self._known: dict[int, dict[str, Any]] = {}
        self._synced: dict[str, tuple[int, int, int]] = {}
        self._flipped: tuple[Path, bytes, bytes] | None = None
        self.trials: list[str] = []
        self.told: Counter[str] = Counter()
        spark.sql(f"CREATE DATABASE {self._schema}")

    def feed(self) -> None:
        """A file more: new rows, changed ones, deletes."""
        records = []
        for _ in range(self._rng.randint(1, 6)):
            self._position += 1
            id, v = self._rng.randrange(_KEYS), self._rng.choice([-1, -1, *range(9)])
            records.append({"id": id, "k": id % 3, "v": v, "pos": self._position})
            self._known[id] = records[-1]
        self._write(records)

    def empty(self) -> None:
        """Every row is deleted."""
        for id in self._known:
            self._position += 1
            self._known[id] = {"id": id, "k": id % 3, "v": -1, "pos": self._position}
        self._write(list(self._known.values()))

    def redeliver(self) -> None:
        """Records that came before come again."""
        files = sorted((self._folder / "in").iterdir())
        self._write([json.loads(line) for line in self._rng.choice(files).read_text().splitlines()])

    def _write(self, records: list[dict[str, Any]]) -> None:
        name = f"{len(list((self._folder / 'in').iterdir())):05}.json"
        (self._folder / "in" / name).write_text("".join(f"{json.dumps(record)}\n" for record in records))

    def run(self) -> None:
        """As `dbt run`, in a process of its own."""
        log.KNOWN.clear()
        checksum._checked.cache_clear()
        page_index.open_pages.cache_clear()
        connections._database.cache_clear()
        compile._CACHE.clear()
        durable._noted.clear()
        run = Run(LazySession.of(self._spark), self._storage, "run", None, lambda line: None)
        for name, sql in MODELS.items():
            inputs: dict[str, Any] = {"s.t": self._source, **{f"{self._schema}.{other}": "model" for other in MODELS}}
            full = f"{self._schema}.{name}"
            text = sql.format(m=self._schema)
            run.model(ModelRequest(full, f"`{self._schema}`.`{name}`", text, ModelConfig(), inputs))

    def wrong(self) -> list[str]:
        """What is not as a replay of the records has it."""
        rows = [record for record in self._known.values() if record["v"] >= 0]
        groups = {k: [row for row in rows if row["k"] == k] for k in range(3)}
        sums = {(k, sum(r["v"] for r in g), len(g), max(r["id"] for r in g)) for k, g in groups.items() if g}
        wanted = {
            "s.t": {(row["id"], row["k"], row["v"], row["pos"]) for row in rows},
            f"{self._schema}.sums": sums,
            f"{self._schema}.above": {(k, v) for k, v, n, _ in sums if n > 1},
        }
        database = dbt_incremental_dd.open(str(self._state))
        found = {name: Counter(_rows(database[name].as_of())) for name in wanted}
        found["the relation"] = Counter(map(tuple, self._spark.table(f"{self._schema}.sums").collect()))
        wanted["the relation"] = sums
        return [f"{name}: {found[name]}, not {rows}" for name, rows in wanted.items() if found[name] != Counter(rows)]

    def trial(self, kind: str) -> None:
        """Harms the state in that way, and runs. Raises AssertionError for wrong rows after a run that went well."""
        backup, known, position = self._folder / "backup", dict(self._known), self._position
        inputs = set((self._folder / "in").iterdir())
        shutil.copytree(self._state / "collections", backup / "collections")
        what = getattr(self, f"_{kind}")()
        self.trials.append(f"{kind}: {what}")
        try:
            for _ in range(2):
                self.run()
                wrong = self.wrong()
                assert not wrong, f"{kind}, {what}: {wrong}"
                self.feed()
            self.told[f"{kind}: exact"] += 1
        except Exception as error:
            if not isinstance(error, DifferentialError) and not is_foreign(error):
                raise
            self.told[f"{kind}: {'refused' if isinstance(error, DifferentialError) else 'failed'}"] += 1
            shutil.rmtree(self._state / "collections")
            shutil.copytree(backup / "collections", self._state / "collections")
            for path in set((self._folder / "in").iterdir()) - inputs:
                path.unlink()
            self._known, self._position = known, position
            self.run()
            assert not self.wrong(), f"{kind}, restored"
        finally:
            shutil.rmtree(backup)
            self._flip_back()

    def _cut(self) -> str:
        """The power is cut at some point of a run: what was not synced is there, or empty, or cut, or gone."""
        left, where = self._rng.randint(1, 60), [""]

        def reached(name: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                where[0] = name
                raise PowerCut

        self.feed()
        before = {path: _version(path) for path in self._files()}
        self._synced.clear()
        patches = _patched(durable, "sync_file", self._sync), _patched(failpoints, "_watcher", reached)
        with patches[0], patches[1], contextlib.suppress(PowerCut):
            self.run()
        for path in self._files():
            if _version(path) not in (before.get(path), self._synced.get(str(path))):
                self._lose(path)
        return where[0]

    def _sync(self, path: str) -> None:
        if os.path.isfile(path):
            self._synced[path] = _version(Path(path))

    def _lose(self, path: Path) -> None:
        size = path.stat().st_size
        fate = self._rng.choice(["whole", "gone", "empty", "cut"])
        if fate == "gone" or (fate != "whole" and path.stat().st_nlink > 1):
            path.unlink()
        elif fate != "whole":
            os.truncate(path, 0 if fate == "empty" else self._rng.randrange(size + 1))

    def _entries(self) -> str:
        """The newest entries of some logs are damaged."""
        logs = sorted((self._state / "collections").rglob("_delta_log"))
        chosen = self._rng.sample(logs, self._rng.choice([1, 1, 2]))
        for folder in chosen:
            for entry in sorted(folder.glob("*.json"), reverse=True)[: self._rng.choice([1, 1, 2])]:
                self._rng.choice([_unlink, _empty, _halve])(entry)
        if self._rng.random() < 0.7:
            self.feed()
        return ", ".join(str(folder.relative_to(self._state)) for folder in chosen)

    def _bit(self) -> str:
        """One bit of a data file, or of an index of page_index, is another."""
        files = [path for path in self._files() if path.suffix in (".parquet", ".pages") and "live" not in path.parts]
        path = self._rng.choice(files)
        before = path.read_bytes()
        changed = bytearray(before)
        changed[self._rng.randrange(len(changed))] ^= 1 << self._rng.randrange(8)
        path.write_bytes(changed)
        self._flipped = path, before, bytes(changed)
        self.feed()
        return str(path.relative_to(self._state))

    def _flip_back(self) -> None:
        """In a file that no run has read, so that no later trial has the damage in its whole state."""
        if self._flipped is not None:
            path, before, changed = self._flipped
            if path.exists() and path.read_bytes() == changed:
                path.write_bytes(before)
        self._flipped = None

    def _again(self) -> str:
        """Records come again after a compaction, at times of rows that are all deleted."""
        if self._rng.random() < 0.5:
            self.empty()
            self.run()
        for _ in compact(LazySession.of(self._spark), self._storage, retain_history=0):
            pass
        self.redeliver()
        return ""

    def _files(self) -> list[Path]:
        found = sorted((self._state / "collections").rglob("*"))
        return [path for path in found if path.is_file() and not path.name.startswith(".")]


KINDS = ("cut", "entries", "bit", "again")


class _patched:
    """An attribute is another one for a while."""

    def __init__(self, module: Any, name: str, value: Callable[[str], None]) -> None:
        self._module, self._name, self._value = module, name, value

    def __enter__(self) -> None:
        self._before = getattr(self._module, self._name)
        setattr(self._module, self._name, self._value)

    def __exit__(self, *_: object) -> None:
        setattr(self._module, self._name, self._before)


def _version(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _rows(table: Any) -> list[tuple[Any, ...]]:
    names = [name for name in table.column_names if name != "dd_diff"]
    return [tuple(row[name] for name in names) for row in table.to_pylist() for _ in range(row["dd_diff"])]


def _unlink(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)
