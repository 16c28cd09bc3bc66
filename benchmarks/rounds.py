"""Models over feeds that change in rounds: each model run and compared with Spark's batch answer after every round."""

from __future__ import annotations

import argparse
import statistics
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from benchmarks.asked import ListeningSession
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.comparison import Verification
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest, Outcome
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.runtime.verify import verify_model
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ERROR = ModelConfig(fallback="error")
"""Of models that may not fall back."""
Note = Callable[[int, Outcome, Verification], None]
"""Is told the round, what a model's run did, and how its rows compare."""


class Feed(Protocol):
    """Sources' folders of files, ready for the first load."""

    def advance(self, round: int) -> dict[str, int]:
        """Writes a round of changes; the number of records by table."""


def arguments(description: str | None, scale: float, share: float, folder: str) -> argparse.ArgumentParser:
    """The options that the benchmarks in rounds have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--scale", type=float, default=scale, help=f"scale factor (default: {scale})")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of changes after the first load (default: 5)")
    parser.add_argument("--share", type=float, default=share, help=f"of the data changed a round (default: {share})")
    parser.add_argument("--only", nargs="*", help="queries, such as q03")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results") / folder)
    return parser


def requests(
    schema: str, queries: Path, sources: Mapping[str, SourceSpec], only: list[str] | None
) -> list[ModelRequest]:
    """A model of each query's file, in order of their names; none may fall back."""
    names = sorted(only or (path.stem for path in queries.glob("q*.sql")))
    return models_of(schema, {name: (queries / f"{name}.sql").read_text() for name in names}, sources, ERROR)


def models_of(
    schema: str, queries: Mapping[str, str], sources: Mapping[str, SourceSpec], config: ModelConfig
) -> list[ModelRequest]:
    """A model of each query, by name."""
    return [
        ModelRequest(f"{schema}.{name}", f"{schema}.{name}", sql, config, dict(sources))
        for name, sql in queries.items()
    ]


def session(folder: Path, schema: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session over the folder's ``state``, with the models' schema."""
    spark = open_session(str(folder / "state"), settings or {})
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
    return spark


def run(
    spark: SparkSession,
    folder: Path,
    feed: Feed,
    models: list[ModelRequest],
    rounds: int,
    thresholds: Thresholds | None = None,
    note: Note = lambda round, made, found: None,
) -> set[str]:
    """All rounds; the names of models that failed or were not exact. ``note`` is told of all runs that did not fail."""
    storage = Storage(str(folder / "state"), thresholds=thresholds or Thresholds())
    wrong: set[str] = set()
    asked: dict[str, list[str]] = {}
    seconds: dict[str, list[tuple[float, float]]] = {model.name: [] for model in models}
    for round in range(rounds + 1):
        print(f"-- round {round}: {feed.advance(round) if round else 'first load'}", flush=True)
        started = time.monotonic()
        session = ListeningSession(spark) if round else LazySession.of(spark)
        runs = Run(session, storage, f"round{round}", None, lambda line: None)
        for spec in {name: how for model in models for name, how in model.inputs.items()}.values():
            if isinstance(spec, SourceSpec):
                runs.source(spec)
        for model in models:
            before = _asked(session)
            done = _run(runs, spark, model)
            if done is None:
                wrong.add(model.name)
                continue
            made, found = done
            asked[model.name] = _asked(session)[len(before) :]
            if not found.exact:
                wrong.add(model.name)
            if round:
                seconds[model.name].append((made.seconds, found.rebuild_seconds))
            note(round, made, found)
            print(_line(made, found), flush=True)
        print(f"round {round}: {time.monotonic() - started:.0f} s")
    report(seconds)
    print(f"without asking Spark in the last round: {sum(not by for by in asked.values())} of {len(asked)}")
    for name, by in asked.items():
        if by:
            print(f"  {name}: {len(by)} times, first {by[0]}")
    print(f"WRONG: {', '.join(sorted(wrong))}" if wrong else f"all exact: {len(models)} models, {rounds} rounds")
    return wrong


def _run(runs: Run, spark: SparkSession, model: ModelRequest) -> tuple[Outcome, Verification] | None:
    """What the model's run did, and how its rows compare; None where either failed, which is told."""
    try:
        return runs.model(model), verify_model(spark, runs.storage, model.name)
    except DifferentialError as error:
        print(f"{model.name} failed: {error}")
    except Exception:  # the others go on
        print(f"{model.name} failed: {traceback.format_exc()}")
    return None


def _line(made: Outcome, found: Verification) -> str:
    verdict = "exact" if found.exact else f"WRONG -{found.missing} +{found.unexpected}"
    return (
        f"{made.name} {made.strategy:<8} in {made.input_rows:>8} out +{made.rows_added} -{made.rows_removed} "
        f"{made.seconds:6.2f} s, rebuild {found.rebuild_seconds:6.2f} s, {found.rows} rows, {verdict}"
    )


def _asked(session: LazySession) -> list[str]:
    return list(session.asked) if isinstance(session, ListeningSession) else []


def report(seconds: Mapping[str, list[tuple[float, float]]]) -> None:
    """Medians of the rounds, and their ratio, by model."""
    for name, pairs in seconds.items():
        if pairs:
            delta, rebuild = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(f"{name}: delta {delta:.2f} s, rebuild {rebuild:.2f} s, ratio {delta / rebuild:.2f}")
