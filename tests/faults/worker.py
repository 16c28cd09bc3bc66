"""A process that does what it is told, and may be ended in the middle: ``python -m tests.faults.worker FOLDER ACT...``.

    fresh           the relations of other folders are removed
    feed            one step more of every source
    run             every source taken in, every model run
    rebuild         the models built anew
    again           the same, with nothing new
    compact         all collections, with nothing retained but the last seconds
    merge           the same with all retained: small files of recent times are merged, two of a size being many
    vacuum          what nothing needs any more is removed
    spare           one more model, of a name of its own, is run
    drop            what is stored of such models is removed: nothing owns them
    check           all collections against the replay, the batch answers, and what was read of them before

``run@commit: before#3`` is ended when that point is reached for the third time; ``run>FILE`` notes the points that it
reaches.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import dbt_incremental_dd
from dbt_incremental_dd.core import failpoints
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime import costs
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.orphans import Owners, orphans, remove_orphans
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.session import is_connect, open_session
from dbt_incremental_dd.runtime.vacuum import vacuum
from dbt_incremental_dd.storage import links
from dbt_incremental_dd.trace import tiers
from dbt_incremental_dd.trace.layout import Storage
from tests.conftest import SETTINGS
from tests.faults.feed import Feed, sources
from tests.faults.models import HISTORIES, MODELS, OUTPUTS
from tests.open_table.readers import READERS, plain
from tests.short_lived import SHORT_LIVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RETAINED = 2_000
"""Milliseconds of history."""
_SETTINGS = {"spark.driver.extraJavaOptions": SHORT_LIVED}
"""A process of half a minute spends most of it on compiling, otherwise."""
_LATEST = 4
"""Times of each collection that are read again, besides the earliest one."""


class Worker:
    """The sources and models of a folder, in this process's session."""

    def __init__(self, folder: Path, retain_history: int = RETAINED, settings: Mapping[str, str] | None = None) -> None:
        """``retain_history`` in ms; ``settings`` of Spark."""
        self._folder = folder
        self._retained = retain_history
        self._storage = Storage(str(folder / "state"))
        self._sources = sources(folder)
        self._feed = Feed(folder)
        given = {"spark.master": "local[2]", "spark.driver.memory": "1g", **(settings or {})}
        own = {name: value for name, value in SETTINGS.items() if name.startswith("spark.sql.")}
        self._spark: SparkSession = open_session(str(folder / "state"), own if is_connect() else {**own, **given})
        self._spark.sql("CREATE DATABASE IF NOT EXISTS m")
        links.STILL_READ = -1.0

    def fresh(self) -> None:
        self._spark.sql("DROP DATABASE m CASCADE")
        self._spark.sql("CREATE DATABASE m")

    def feed(self) -> None:
        self._feed.to(self._feed.written + 1)

    def run(self, full_refresh: bool = False) -> None:
        run = Run(LazySession.of(self._spark), self._storage, "worker", None, lambda line: None)
        for spec in self._sources.values():
            run.source(spec)
        for name in (*MODELS, *HISTORIES):
            run.model(self._request(name, full_refresh))

    def again(self) -> None:
        self.run()

    def rebuild(self) -> None:
        self.run(full_refresh=True)

    def compact(self) -> None:
        for _ in compact(LazySession.of(self._spark), self._storage, retain_history=self._retained):
            pass

    def merge(self) -> None:
        tiers.FAN, tiers.TIERS = 2, 8
        for _ in compact(LazySession.of(self._spark), self._storage, retain_history=3_600_000):
            pass

    def spare(self) -> None:
        run = Run(LazySession.of(self._spark), self._storage, "worker", None, lambda line: None)
        name = f"spare{self._feed.written}"
        run.model(
            replace(
                self._request("sums", False), name=f"m.{name}", relation=f"`m`.`{name}`", unique_id=f"model.p.{name}"
            )
        )

    def drop(self) -> None:
        for _ in remove_orphans(orphans(self._storage, Owners(["p"], {}))):
            pass
        assert not [place.name for place in self._storage.collections() if "spare" in place.name]

    def vacuum(self) -> None:
        for _ in vacuum(self._storage, older_than=0):
            pass

    def check(self) -> None:
        """Raises AssertionError with what is wrong."""
        self._feed.to(self._feed.written)
        database = dbt_incremental_dd.open(str(self._folder / "state"))
        wrong = []
        for name, rows in self._feed.tables.items():
            found = _counted(database[f"s.{name}"].as_of())
            if found != rows:
                wrong.append(f"source {name}: lost {rows - found}, doubled {found - rows}")
        for name, answer in self._answers():
            rows, found = _rows(answer), _counted(database[f"m.{name}"].as_of())
            if found != rows:
                wrong.append(f"model {name}: lost {rows - found}, too many {found - rows}")
            if _rows(self._spark.table(f"m.{name}").select(*answer.columns)) != found:
                wrong.append(f"the relation {name} does not show the model")
        for name, (model, _, _) in HISTORIES.items():
            wrong += self._history(database[f"m.{name}"], database[f"m.{model}"])
        wrong += [f"the table of {name} is another" for name in OUTPUTS if not _is_shown(name, database[f"m.{name}"])]
        wrong += self._read_again(database)
        assert not wrong, "\n".join(wrong)

    def _answers(self) -> Iterator[tuple[str, DataFrame]]:
        """Spark's batch answer to each model, over the replay: nothing that is stored has a part in it."""
        for name, rows in self._feed.tables.items():
            columns = [
                column
                for column in self._sources[name].columns
                if column[0] != self._sources[name].settings.diff_column
            ]
            schema = ", ".join(map(" ".join, columns))
            table = list(rows.elements())
            self._spark.createDataFrame(table, schema, verifySchema=False).createOrReplaceTempView(f"s_{name}")
        for name, sql in MODELS.items():
            answer = self._spark.sql(re.sub(r"\b([sm])\.(?=\w{3})", r"\1_", sql))
            answer.createOrReplaceTempView(f"m_{name}")
            yield name, answer

    def _history(self, history: Any, model: Any) -> list[str]:
        """What was valid at a time is what the model held then."""
        last = min(history.frontiers.last, model.frontiers.last)
        times = {*self._known().get(model.name, {}), str(last)}
        found = history.as_of()
        begins, ends = (found[name].cast("timestamp[ms]").cast("int64") for name in ("valid_from", "valid_to"))
        rows = found.drop_columns(["valid_from", "valid_to", "is_current"])
        wrong = []
        for t in sorted(int(t) for t in times if model.frontiers.since <= int(t) <= last):
            is_valid = pc.and_(pc.less_equal(begins, t), pc.fill_null(pc.greater(ends, t), True))
            if _counted(rows.filter(is_valid)) != _counted(model.as_of(t)):
                wrong.append(f"{history.name} has other rows at {t} than {model.name}")
        return wrong

    def _known(self) -> dict[str, dict[str, str]]:
        """Digests of what was read at times, by collection."""
        path = self._folder / "read.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def _read_again(self, database: Any) -> list[str]:
        """What was readable at a time is so still, and the same."""
        path, known = self._folder / "read.json", self._known()
        wrong = []
        for collection in database.collections():
            times = known.setdefault(collection.name, {})
            since, last = collection.frontiers.since, collection.frontiers.last
            kept = sorted(int(t) for t in times if int(t) >= since)
            wrong += [f"{collection.name} is before {t}, which was final" for t in kept if t > last]
            for t in {*kept[:1], *kept[-_LATEST:]}:
                if _digest(collection.as_of(t)) != times[str(t)]:
                    wrong.append(f"{collection.name} as of {t} is not what it was")
            times[str(last)] = _digest(collection.as_of(last))
        path.write_text(json.dumps(known))
        return wrong

    def _request(self, name: str, full_refresh: bool) -> ModelRequest:
        inputs: dict[str, Any] = {f"s.{source}": spec for source, spec in self._sources.items()}
        inputs |= {f"m.{model}": "model" for model in MODELS}
        _, sql, history = HISTORIES[name] if name in HISTORIES else ("", MODELS[name], None)
        return ModelRequest(
            name=f"m.{name}",
            relation=f"`m`.`{name}`",
            sql=sql,
            config=ModelConfig(history=history, output=OUTPUTS.get(name, "")),
            inputs=inputs,
            full_refresh=full_refresh,
        )


def _is_shown(model: str, collection: Any) -> bool:
    """Whether the collection's open table has its rows, as another engine reads them."""
    rows, names = collection.as_of(), collection.schema.names
    expected = Counter({tuple(plain(row[name]) for name in names): row["dd_diff"] for row in rows.to_pylist()})
    return READERS[OUTPUTS[model]](collection.table_uri, names) == expected


def _rows(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, frame.collect()))


def _counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    names = [name for name in table.column_names if name != "dd_diff"]
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in table.to_pylist():
        counts[tuple(row[name] for name in names)] += row["dd_diff"]
    return counts


def _digest(table: pa.Table) -> str:
    rows = sorted(repr(sorted(row.items())) for row in table.to_pylist())
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def main() -> int:
    """Does the acts in turn."""
    costs.QUICK_SECONDS = math.inf  # which points a run comes to does not depend on how long others took
    worker = Worker(Path(sys.argv[1]), settings=_SETTINGS)
    for act in sys.argv[2:]:
        told, _, noted_in = act.partition(">")
        name, _, stop_at = told.partition("@")
        failpoints.watch(stop_at, noted_in)
        started = time.monotonic()
        getattr(worker, name)()
        failpoints.watch()
        print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
