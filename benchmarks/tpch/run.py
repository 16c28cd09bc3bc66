"""TPC-H's 22 queries as models: rounds of changes to every table, each model compared with Spark's batch answer.

``python -m benchmarks.tpch.run --scale 0.1 --rounds 5``
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.tpch.feed import KEYS, Feed
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.runtime.verify import verify_model
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = Path(__file__).with_name("queries")


def main() -> int:
    """0 when every model was exact after every round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor (default: 0.1)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.001, help="of each table changed a round (default: 0.001)")
    parser.add_argument("--only", nargs="*", help="queries, such as q03")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/tpch"))
    options = parser.parse_args()
    folder = options.folder.resolve()
    feed = Feed(folder, options.scale, options.share)
    spark = open_session(str(folder / "state"), {})
    names = sorted(options.only or (path.stem for path in QUERIES.glob("q*.sql")))
    wrong = run(spark, folder, feed, names, options.rounds)
    print(f"{'WRONG: ' + ', '.join(sorted(wrong)) if wrong else 'all exact'}")
    return 1 if wrong else 0


def run(spark: SparkSession, folder: Path, feed: Feed, names: list[str], rounds: int) -> set[str]:
    """All rounds; the names of models that failed or were not exact."""
    spark.sql("CREATE DATABASE IF NOT EXISTS tpch")
    storage = Storage(str(folder / "state"))
    wrong: set[str] = set()
    deltas: dict[str, list[float]] = {name: [] for name in names}
    rebuilds: dict[str, list[float]] = {name: [] for name in names}
    for round in range(rounds + 1):
        print(f"-- round {round}: {feed.advance(round) if round else 'first load'}", flush=True)
        started = time.monotonic()
        outcome = Run(spark, storage, f"round{round}", None, lambda line: None)
        for name in names:
            try:
                made = outcome.model(_request(folder, name))
                found = verify_model(spark, storage, f"tpch.{name}")
            except DifferentialError as error:
                print(f"{name} failed: {error}")
                wrong.add(name)
                continue
            if not found.exact:
                wrong.add(name)
            if round:
                deltas[name].append(made.seconds)
                rebuilds[name].append(found.rebuild_seconds)
            verdict = "exact" if found.exact else f"WRONG -{found.missing} +{found.unexpected}"
            print(
                f"{name} {made.strategy:<8} in {made.input_rows:>8} out +{made.rows_added} -{made.rows_removed} "
                f"{made.seconds:6.2f} s, rebuild {found.rebuild_seconds:6.2f} s, {found.rows} rows, {verdict}",
                flush=True,
            )
        print(f"round {round}: {time.monotonic() - started:.0f} s")
    for name in names:
        if deltas[name]:
            delta, rebuild = statistics.median(deltas[name]), statistics.median(rebuilds[name])
            print(f"{name}: delta {delta:.2f} s, rebuild {rebuild:.2f} s, ratio {delta / rebuild:.2f}")
    return wrong


def _request(folder: Path, name: str) -> ModelRequest:
    sources = {
        f"tpch.{table}": parse_source(
            f"tpch.{table}",
            f"tpch.{table}",
            {
                "envelope": "upsert",
                "key": list(key),
                "order_by": ["seq"],
                "deleted_when": "op = 'd'",
                "path": str(folder / table),
                "format": "parquet",
            },
            {},
            str(folder),
        )
        for table, key in KEYS.items()
    }
    sql = (QUERIES / f"{name}.sql").read_text()
    return ModelRequest(f"tpch.{name}", f"tpch.{name}", sql, ModelConfig(fallback="error"), dict(sources))


if __name__ == "__main__":
    sys.exit(main())
