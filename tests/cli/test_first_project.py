"""`dbt-dd init` writes a project that dbt runs as it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dbt_incremental_dd
from dbt_incremental_dd.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_it_runs_as_it_is(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dbt.cli.main import dbtRunner

    folder = tmp_path / "my-shop"
    assert main(["init", str(folder)]) == 0
    assert "dbt run" in capsys.readouterr().out
    arguments = ["--project-dir", str(folder), "--profiles-dir", str(folder), "--quiet"]
    assert dbtRunner().invoke(["build", *arguments]).success
    found = dbt_incremental_dd.open(str(folder / ".dbt_incremental_dd"))["analytics.spend"].as_of()
    assert {row["customer"]: str(row["spend"]) for row in found.to_pylist()} == {"ann": "5.00", "bob": "8.50"}


@pytest.mark.parametrize("name", ["full", "file", "1st", "a b"])
def test_it_takes_no_folder_that_will_not_do(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    (tmp_path / "file").write_text("mine")
    assert main(["init", str(tmp_path / name)]) == 1
    assert "dbt-dd: " in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "x"]
