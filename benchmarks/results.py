"""Results as JSON, each with what it was measured on."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path("benchmarks/results")


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """``--folder``, where the benchmark works, and ``--json``, where it writes its results."""
    parser.add_argument("--folder", type=Path, default=FOLDER / name, help=f"to work in (default: {FOLDER / name})")
    default = FOLDER / f"{name}.json"
    parser.add_argument("--json", type=Path, default=default, help=f"where to write the results (default: {default})")


def write(path: Path, results: Any) -> None:
    """The results, and the machine."""
    import pyspark

    machine = {
        "cores": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")


def read(path: Path) -> dict[str, Any]:
    """What ``write`` wrote."""
    return dict(json.loads(path.read_text()))


def geometric_mean(values: Iterable[float]) -> float:
    """Of positive numbers."""
    return math.exp(statistics.fmean(map(math.log, values)))


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    names = list(head)
    lines = [names, ["---", *["--:"] * (len(names) - 1)], *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
