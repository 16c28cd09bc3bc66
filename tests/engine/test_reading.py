"""What a small change reads, by Spark's metrics and the driver's own count."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.results import read


def test_an_aggregate_reads_little_more_than_the_change(tmp_path: Path) -> None:
    """A ten-thousandth of the rows is new; a process of its own, because metrics are a session's setting."""
    command = [sys.executable, "-m", "benchmarks.floor", "--rows", "1000000", "--changed", "100", "--repeats", "3"]
    command += ["--folder", str(tmp_path / "floor"), "--json", str(tmp_path / "found.json")]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    found = read(tmp_path / "found.json")["results"]
    assert 100 <= found["read_rows"] <= 20 * 100
