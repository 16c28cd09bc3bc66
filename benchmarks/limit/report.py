"""What ``benchmarks.limit.run`` found, for ``docs/benchmarks.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.results import table


def section(found: dict[str, Any], folder: Path) -> str:
    """Seconds of both, and the dataflows' memory."""
    kinds = {"first load": found["first_load"]}
    kinds |= {f"{one['where']}, {one['share']:.2%}": one for one in found["refreshes"]}
    rows = []
    for kind, one in kinds.items():
        ours = {**one["ours"], "together": sum(one["ours"].values())}
        for name, its in one["dataflow"].items():
            rows.append((f"{kind}: {name}", f"{ours[name]:.3f}", f"{its:.5f}", f"{ours[name] / its:,.0f}"))
    memory = ", ".join(f"{name} {size / 1e6:,.0f} MB" for name, size in found["memory"].items())
    return "\n".join(
        (
            f"## The limit, scale factor {found['scale']:g}\n",
            f"`python -m benchmarks.limit.run --scale {found['scale']:g}`: the same changes for our models and for the "
            "crate `differential-dataflow`, which holds the queries in memory and stores nothing; `together` holds "
            "all three in one dataflow. Its seconds are those from updates in memory until the answers are up to "
            "date; ours are the models', without the sources' intake. Refreshes counted of each kind: "
            f"{found['repeats']}, after one to warm up; threads of a dataflow: {found['workers']}.\n",
            table(("changes: query", "ours s", "dataflow s", "ours / dataflow"), rows),
            f"The dataflows' memory at its peak: {memory}.\n",
        )
    )
