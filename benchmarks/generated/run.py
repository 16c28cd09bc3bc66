"""A generated suite of analytic queries as models: each round changes a share of all tables, and each model is compared
with Spark's batch answer.

``python -m benchmarks.generated.run --scale 0.1 --rounds 2 --share 0.01``

A model's batch answer reads the inputs' contents as they are stored. With ``--plain`` it is also timed over plain
Parquet files of the tables, which Spark reads in less time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks import rounds
from benchmarks.generated.feed import ShareFeed
from benchmarks.generated.queries import queries, shape_of
from benchmarks.generated.report import report
from benchmarks.results import FOLDER, write
from benchmarks.tpch.run import sources
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import ParsedQuery
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.comparison import Verification
from dbt_incremental_dd.runtime.compile import compile_model
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest, Outcome
from dbt_incremental_dd.trace.columns import require
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> int:
    """0 when every model was exact after every round; one that is recomputed whole is told, and no error."""
    options = _arguments()
    folder = options.folder.resolve()
    texts = {name: text for name, text in queries(options.seed, options.count).items() if name in options.only}
    feed = ShareFeed(folder, options.scale, options.share)
    models = rounds.models_of("generated", texts, sources(folder), ModelConfig(fallback="recompute"))
    spark = rounds.session(folder, "generated")
    notes = _Notes()
    wrong = rounds.run(spark, folder, feed, models, options.rounds, note=notes.note)
    storage = Storage(str(folder / "state"))
    found = {model.name.split(".")[1]: notes.result(model) | _compiled(spark, storage, model) for model in models}
    if options.plain:
        for name, seconds in _plain(spark, folder, feed, texts).items():
            found[name]["plain"] = seconds
    report(found)
    names = ("scale", "share", "rounds", "seed")
    settings = {name: getattr(options, name) for name in names}
    write(options.json, {**settings, "queries": found, "wrong": sorted(wrong)})
    print(f"WRONG: {', '.join(sorted(wrong))}" if wrong else "all exact")
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = rounds.arguments(__doc__, scale=0.1, share=0.01, folder="generated")
    parser.add_argument("--seed", type=int, default=1, help="another one makes another suite (default: 1)")
    parser.add_argument("--count", type=int, default=50, help="of queries (default: 50)")
    parser.add_argument("--plain", action="store_true", help="time Spark over plain Parquet files, too, at the end")
    default = FOLDER / "generated.json"
    parser.add_argument("--json", type=Path, default=default, help=f"where to write the results (default: {default})")
    parser.set_defaults(rounds=2)
    options = parser.parse_args()
    names = queries(options.seed, options.count)
    options.only = options.only or list(names)
    if unknown := sorted(set(options.only) - set(names)):
        parser.error(f"there is no query {', '.join(unknown)}")
    return options


class _Notes:
    """What models' runs did, and how they compared, by model and round."""

    def __init__(self) -> None:
        self._notes: dict[str, dict[int, tuple[Outcome, Verification]]] = {}

    def note(self, round: int, made: Outcome, found: Verification) -> None:
        """As ``rounds.run`` wants it."""
        self._notes.setdefault(made.name, {})[round] = made, found

    def result(self, model: ModelRequest) -> dict[str, Any]:
        """Seconds are medians of the rounds after the first load; they are missing where all of these failed."""
        notes = self._notes.get(model.name, {})
        later = [pair for round, pair in notes.items() if round]
        result: dict[str, Any] = {"shape": shape_of(model.sql), "strategies": [made.strategy for made, _ in later]}
        if 0 in notes:
            result |= {"first": notes[0][0].seconds, "rows": notes[0][1].rows}
        if later:
            result["delta"] = statistics.median(made.seconds for made, _ in later)
            result["batch"] = statistics.median(found.rebuild_seconds for _, found in later)
            result["changed"] = statistics.median(made.rows_added + made.rows_removed for made, _ in later)
        return result


def _compiled(spark: SparkSession, storage: Storage, model: ModelRequest) -> dict[str, Any]:
    """Seconds of making the model's plan anew, and why parts of it are recomputed whole; nothing if it is refused."""
    query = ParsedQuery(model.sql)
    started = time.monotonic()
    try:
        stored = {relation.key: require(storage, relation.key) for relation in query.relations}
        inputs = {key: Input(log.name, schema) for key, (log, schema) in stored.items()}
        plan = compile_model(LazySession.of(spark), model.name, query, inputs).plan
    except DifferentialError as error:
        return {"refused": str(error)}
    return {"compile": time.monotonic() - started, "fallbacks": list(plan.fallbacks)}


def _plain(spark: SparkSession, folder: Path, feed: ShareFeed, texts: dict[str, str]) -> dict[str, float]:
    """Seconds of Spark's answers over plain Parquet files of the tables as they are now."""
    (folder / "plain").mkdir(exist_ok=True)
    for name, table in feed.rows.items():
        file = folder / "plain" / f"{name}.parquet"
        pq.write_table(table, file)
        spark.read.parquet(str(file)).createOrReplaceTempView(f"plain_{name}")
    seconds = {}
    for name, sql in texts.items():
        started = time.monotonic()
        spark.sql(sql.replace("tpch.", "plain_")).localCheckpoint()
        seconds[name] = time.monotonic() - started
    return seconds


if __name__ == "__main__":
    sys.exit(main())
