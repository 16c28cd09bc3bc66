"""Plans are stored with their models, and taken again by the next process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.differential.serial import loads
from dbt_incremental_dd.runtime import compile
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_stored_plan_is_taken_and_a_damaged_one_made_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    compiled = compile.compile_model

    def counted(*args: object, **options: object) -> compile.Compiled:
        made.append(str(args[1]))
        return compiled(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(compile, "compile_model", counted)
    world = World(spark, tmp_path, {"t": Table("k INT, v INT")})
    world.model("m", "SELECT k, sum(v) AS v FROM {t} GROUP BY k")
    for step in range(4):
        world.insert("t", [(step % 2, step)])
        if step == 3:
            (path,) = tmp_path.glob("collections/*.m/plan-*.json")
            path.write_text(path.read_text().replace("Accumulate", "Accumulated"))
        world.step()
        world.check()
        assert len(made) == (2 if step == 3 else 1)
    world.model("m", "SELECT k, sum(v) + 1 AS v FROM {t} GROUP BY k")
    world.step()
    world.check()
    assert len(made) == 3


@pytest.mark.parametrize("text", ["", "[]", "{}", '[["Get", []]]', '[["Gone", []]]', '[["Expr", [{"object": 7}]]]'])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        loads(text)
