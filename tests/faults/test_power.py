"""Power cuts, lost log entries, bit rot, redelivery: a run either refuses, or is exact."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults.power import KINDS, Machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def machine(spark: SparkSession, folder: Path, seed: int) -> Machine:
    """After some runs."""
    made = Machine(spark, folder, seed)
    for _ in range(3):
        made.feed()
        made.run()
    assert not made.wrong()
    return made


def test_some_failures(spark: SparkSession, tmp_path: Path) -> None:
    made = machine(spark, tmp_path, 3)
    for kind in (*KINDS, "cut", "entries"):
        made.trial(kind)
    assert sum(made.told.values()) == 6


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_many_failures(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed, trials = int(os.environ.get("SEED", "1")), int(os.environ.get("TRIALS", "200"))
    made = machine(spark, tmp_path, seed)
    for number in range(trials):
        made.trial(KINDS[number % len(KINDS)])
    with capsys.disabled():
        print(f"\n{trials} trials, 0 wrong: {dict(sorted(made.told.items()))}")
