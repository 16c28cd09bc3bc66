"""Each project twice: with ``differential`` models, and as a user of dbt-duckdb has it, over the same files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from benchmarks.cold import duckdb_project
from benchmarks.wide import project as wide
from benchmarks.wide.feed import SOURCES
from benchmarks.wide.feed import Feed as WideFeed

EXAMPLES = Path(__file__).parents[2] / "example_project"
PROJECTS = ("tutorial", "flights", "payments", "clickstream", "wide")
_ROWS = 10_000
"""Of each source of ``wide``."""
_ORDER_COLUMNS = {"id": "BIGINT", "customer": "VARCHAR", "amount": "DECIMAL(12,2)", "updated_at": "TIMESTAMP"}


@dataclass(frozen=True)
class Pair:
    """``change(n)`` writes the n-th change's files."""

    ours: Path
    theirs: Path
    change: Callable[[int], object]


def pair(name: str, folder: Path) -> Pair:
    """Writes both projects and the first files below the folder."""
    ours, theirs = folder / name, folder / "duckdb"
    makers = {"tutorial": _tutorial, "wide": _wide}
    return Pair(ours, theirs, makers.get(name, _example)(name, ours, theirs))


def _example(name: str, ours: Path, theirs: Path) -> Callable[[int], object]:
    ignored = shutil.ignore_patterns("data", "target", "logs", ".dbt*", "__pycache__")
    shutil.copytree(EXAMPLES / name, ours, ignore=ignored)
    duckdb_project.write(EXAMPLES / name, theirs, duckdb_project.sources_of(name, ours / "data"))
    feed = import_module(f"example_project.{name}.feed").Feed
    made = feed(ours / "data", 300) if name == "flights" else feed(ours / "data")
    made.start()
    return made.advance  # type: ignore[no-any-return]


def _tutorial(_: str, ours: Path, theirs: Path) -> Callable[[int], object]:
    """The README's project, as ``dbt-dd init`` writes it."""
    program = Path(sys.executable).parent / "dbt-dd"
    subprocess.run([program, "init", ours.name], cwd=ours.parent, check=True, capture_output=True)
    orders = ours / "data" / "orders"
    text = duckdb_project.latest(
        duckdb_project.json_files(f"{orders}", _ORDER_COLUMNS), "id", "updated_at", "* exclude (n)", "true"
    )
    duckdb_project.write(ours, theirs, {"shop.orders": text})

    def change(number: int) -> None:
        at = f"2024-01-{number + 2:02d}T10:00:00Z"
        records = ({"id": i, "customer": f"c{i % 20}", "amount": number, "updated_at": at} for i in range(100))
        (orders / f"change{number}.json").write_text("".join(f"{json.dumps(record)}\n" for record in records))

    return change


def _wide(_: str, ours: Path, theirs: Path) -> Callable[[int], object]:
    """Fifty models on ten sources, of which each change concerns one."""
    data = ours / "data"
    feed = WideFeed(data, _ROWS)
    wide.write_project(ours, "wide", "differential", data, {})
    texts = {f"wide.{name}": f"read_parquet('{data / name}/*.parquet')" for name in SOURCES}
    duckdb_project.write(ours, theirs, texts)
    return lambda number: feed.change(SOURCES[number % len(SOURCES)], 100 / _ROWS)
