"""A large model's first run: its rows computed, against those of a table that is there taken over.

Each model is made in four ways over the same stored inputs, in one session: computed, and adopted with each kind of
verification. Then the same 1,000 rows change under all of them. Seconds by phase: of the first run, and of the first
change, which builds the states of adopted models. At the end every model is compared with Spark's batch answer.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.adopt import Adopt, Verify
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest, Outcome
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.runtime.verify import verify_model
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {
    "joined": "select l.line_id, o.region, o.customer, l.amount, l.status"
    " from bench.lines l join bench.orders o on o.order_id = l.order_id",
    "by_order": "select o.order_id, o.region, count(*) as lines, sum(l.amount) as amount, max(l.line_id) as last"
    " from bench.lines l join bench.orders o on o.order_id = l.order_id group by o.order_id, o.region",
    "by_region": "select o.region, l.status, count(*) as lines, sum(l.amount) as amount"
    " from bench.lines l join bench.orders o on o.order_id = l.order_id group by o.region, l.status",
}
"""As many rows as there are lines and no state; a row and a state of each order; few rows."""
WAYS: dict[str, Verify | None] = {"computed": None, "sample": "sample", "whole": "whole", "none": "none"}


def main() -> int:
    """Prints a table, and the results as JSON where a file is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of both inputs together (default: 2 million)")
    parser.add_argument("--model", choices=MODELS, action="append", help="one of the models (default: all)")
    parser.add_argument("--way", choices=WAYS, action="append", help="one of the ways (default: all)")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/adoption"))
    parser.add_argument("--json", type=Path, help="where to write the results")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    folder = options.folder.resolve()
    spark = open_session(str(folder / "state"), {})
    bench = _Bench(spark, folder, options.rows)
    bench.warm()
    wanted = [(name, way) for name in options.model or MODELS for way in options.way or WAYS]
    results = [bench.first(name, way) for name, way in wanted]
    bench.change()
    for result in results:
        bench.next(result)
    print(f"{'model':10} {'way':9} {'first run':>9} {'first change':>12}  phases of the first run; of the first change")
    for one in results:
        told = f"{_phases(one['phases'])}; {_phases(one['change_phases'])}"
        print(f"{one['model']:10} {one['way']:9} {one['seconds']:8.2f}s {one['change_seconds']:11.2f}s  {told}")
    exact = all(verify_model(spark, bench.storage, f"bench.{name}_{way}").exact for name, way in wanted)
    print("exact" if exact else "WRONG")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    return 0 if exact else 1


def _phases(phases: dict[str, float]) -> str:
    return " ".join(f"{name} {seconds:.2f}" for name, seconds in phases.items() if seconds >= 0.01)


class _Bench:
    """The inputs, stored, and a table of each model's rows."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self._spark = spark
        self._folder = folder
        self._orders = rows // 5
        self.storage = Storage(str(folder / "state"))
        spark.sql("CREATE DATABASE IF NOT EXISTS bench")
        spark.range(self._orders).selectExpr(
            "id AS order_id", "CAST(id % 97 AS INT) AS region", "id * 7 % 1000 AS customer"
        ).write.parquet(str(folder / "orders"))
        spark.range(rows - self._orders).selectExpr(
            "id AS line_id",
            "id DIV 4 AS order_id",
            "CAST(id % 10007 / 100 AS DECIMAL(12,2)) AS amount",
            "element_at(array('open', 'sent', 'back'), CAST(id % 3 + 1 AS INT)) AS status",
        ).write.parquet(str(folder / "lines"))
        settings = {"envelope": "append", "format": "parquet"}
        self._inputs = {
            f"bench.{name}": parse_source(f"bench.{name}", f"bench.{name}", {**settings, "path": name}, {}, str(folder))
            for name in ("orders", "lines")
        }
        for name, sql in MODELS.items():
            for table in ("orders", "lines"):
                spark.read.parquet(str(folder / table)).createOrReplaceTempView(f"plain_{table}")
                sql = sql.replace(f"bench.{table}", f"plain_{table}")
            spark.sql(f"CREATE TABLE bench.{name} USING parquet AS {sql}")

    def warm(self) -> None:
        """Takes in the inputs, and runs one model that is not measured."""
        self._run("warm", MODELS["by_region"], ModelConfig())
        self._run("warm_too", MODELS["by_region"], ModelConfig(adopt=Adopt("bench.by_region", "whole")))

    def first(self, name: str, way: str) -> dict[str, Any]:
        """The model's first run."""
        verify = WAYS[way]
        config = ModelConfig() if verify is None else ModelConfig(adopt=Adopt(f"bench.{name}", verify))
        outcome = self._run(f"{name}_{way}", MODELS[name], config)
        return {"model": name, "way": way, "seconds": outcome.seconds, "phases": outcome.profile.phases}

    def change(self) -> None:
        """A thousand lines more, of random orders."""
        table = pa.table(
            {
                "line_id": pa.array([10**12 + i for i in range(1_000)], pa.int64()),
                "order_id": pa.array([i * 7919 % self._orders for i in range(1_000)], pa.int64()),
                "amount": pa.array([1] * 1_000, pa.decimal128(12, 2)),
                "status": pa.array(["open"] * 1_000, pa.string()),
            }
        )
        pq.write_table(table, self._folder / "lines" / "later.parquet")
        self._run("warm", MODELS["by_region"], ModelConfig())

    def next(self, result: dict[str, Any]) -> None:
        """The model's run after the change."""
        outcome = self._run(f"{result['model']}_{result['way']}", MODELS[result["model"]], ModelConfig())
        result |= {
            "strategy": outcome.strategy,
            "change_seconds": outcome.seconds,
            "change_phases": outcome.profile.phases,
        }

    def _run(self, name: str, sql: str, config: ModelConfig) -> Outcome:
        run = Run(LazySession.of(self._spark), self.storage, name, None, lambda _: None)
        return run.model(ModelRequest(f"bench.{name}", f"bench.{name}", sql, config, self._inputs))


if __name__ == "__main__":
    sys.exit(main())
