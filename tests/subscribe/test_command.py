"""``dbt-dd subscribe``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dbt_incremental_dd.cli import main
from tests.subscribe.stored import Stored


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (
            "json",
            [
                {"dd_time": 15, "dd_diff": 1, "k": 1, "v": "a"},
                {"dd_time": 16, "dd_progressed": True},
                {"dd_time": 20, "dd_diff": -1, "k": 1, "v": "a"},
                {"dd_time": 30, "dd_progressed": True},
            ],
        ),
        ("csv", ["dd_time,dd_progressed,dd_diff,k,v", "15,false,1,1,a", "16,true,,,", "20,false,-1,1,a", "30,true,,,"]),
        (
            "table",
            [
                "time  diff  k  v",
                "1970-01-01 00:00:00.015  +1  1  a",
                "1970-01-01 00:00:00.016  -- nothing more before",
                "1970-01-01 00:00:00.020  -1  1  a",
                "1970-01-01 00:00:00.030  -- nothing more before",
            ],
        ),
    ],
)
def test_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, told: list[object]) -> None:
    stored = Stored(tmp_path)
    stored.commit({10: Counter({(1, "a"): 1}), 20: Counter({(1, "a"): -1})}, 41)
    begin = ["--state-root", str(tmp_path), "subscribe", "kept", "--format", form, "--progress"]
    assert main([*begin, "--as-of", "1970-01-01T00:00:00.015", "--up-to", "1970-01-01T00:00:00.030"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ([json.loads(line) for line in lines] if form == "json" else lines) == told


def test_what_cannot_be_followed_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = Stored(tmp_path)
    stored.commit({}, 41)
    stored.forget(30)
    begin = ["--state-root", str(tmp_path), "subscribe"]
    assert main([*begin, "other"]) == 1
    assert "m.kept" in capsys.readouterr().err
    assert main([*begin, "kept", "--as-of", "1970-01-01T00:00:00.010"]) == 1
    assert "since" in capsys.readouterr().err
