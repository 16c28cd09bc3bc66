"""The same scenarios, every one of them, where Spark computes everything: as with deltas that are too large for the
driver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.differential.top import KeptTop
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Get
from dbt_incremental_dd.render.renderer import Renderer
from tests.engine.scenarios import SCENARIOS, run
from tests.fixtures.scenario import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt_incremental_dd.relation.relation import Relation


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_rows_are_as_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_spark: Thresholds, path: Path
) -> None:
    found = _noted(monkeypatch)
    run(spark, tmp_path, read(path), in_spark)
    on_driver = [node for node, is_local in found if is_local and not _may_be_local(node)]
    assert found and not on_driver, on_driver


def _noted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Node, bool]]:
    """Each operator that gives rows from now on, and whether they are some rows on the driver."""
    noted: list[tuple[Node, bool]] = []
    for name in ("delta", "contents"):
        of: Any = getattr(Renderer, name)

        def noting(self: Renderer, node: Node, of: Any = of, **options: Any) -> Relation | None:
            rows: Relation | None = of(self, node, **options)
            if rows is not None:
                noted.append((node, rows.is_local and not rows.is_empty))
            return rows

        monkeypatch.setattr(Renderer, name, noting)
    return noted


def _may_be_local(node: Node) -> bool:
    """Whether its rows are never many: those that a query lists itself, those that a LIMIT keeps, the one row of an
    aggregate, and what is made of them."""
    below = list(each_once(node))
    if not any(isinstance(each, Get) for each in below):
        return True
    return any(isinstance(each, KeptTop) or (isinstance(each, Accumulate) and each.global_row) for each in below)
