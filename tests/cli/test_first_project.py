"""`dbt-dd init` writes over nothing. That dbt runs what it writes is in test_tutorial.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_incremental_dd.cli import main


@pytest.mark.parametrize("name", ["full", "file", "1st", "a b"])
def test_it_takes_no_folder_that_will_not_do(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    (tmp_path / "file").write_text("mine")
    assert main(["init", str(tmp_path / name)]) == 1
    assert "dbt-dd: " in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "x"]
