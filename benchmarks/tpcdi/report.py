"""What ``benchmarks.tpcdi.run`` found, for ``docs/benchmarks.md``."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import plots
from benchmarks.results import read, table

_OTHERS = {"tpcdi_deletes": "deletes alone", "tpcdi_updates": "updates alone"}
"""Results of days of one kind of change, where they are there."""


def section(found: dict[str, Any], folder: Path) -> str:
    """Seconds of each project, and the rows in which it is wrong."""
    days, ways = found["days"], found["ways"]
    plots.days(folder / "tpcdi.svg", {way: [day[way]["seconds"] for day in days] for way in ways})
    later, shares = days[1:], found["shares"]
    changed = {kind: fmean(day["changed"][kind] for day in later) for kind in ("inserted", "updated", "deleted")}
    told = ", ".join(f"{count:,.0f} {kind}" for kind, count in changed.items())
    again = f", and every {found['again_every']} days a file of trades comes again" if found.get("again_every") else ""
    date, wrong = list(found["wrong"].items())[-1]
    return "\n".join(
        (
            f"## A data warehouse, day after day: TPC-DI, scale factor {found['scale']:g}\n",
            f"`python -m benchmarks.tpcdi.run --scale {found['scale']:g} --days {len(later)} --ways {' '.join(ways)}`: "
            "49 models over the files of a brokerage, after TPC-DI's specification. `differential` and `table` have "
            "the same selects; in `incremental`, 20 models are written by hand over Delta tables. "
            f"{shares['inserts']:.1%} of the rows of trades, accounts, customers and watches come each day, "
            f"{shares['updates']:.1%} change and {shares['deletes']:.1%} go ({told} trades, accounts and customers a "
            f"day); one trade of twenty comes late{again}. Seconds are of whole `dbt run`s, each a process of its own, "
            "with the start of Python, dbt and, where it is needed, Spark.\n",
            table(("", *ways), summary(days, ways)),
            "![Seconds up to each day](benchmarks/tpcdi.svg)\n",
            f"Rows too many or too few on {date}, against `table`, in models that have any:\n",
            table(("model", *ways), _wrong(wrong, ways)),
            "How the differential models were brought up to date, over all days: "
            f"{_strategies(later)}. A model is built anew where its former runs say that this is quicker.\n",
            *(_alone(folder / f"{name}.json", told) for name, told in _OTHERS.items()),
        )
    )


def summary(days: list[dict[str, Any]], ways: list[str]) -> list[list[str]]:
    """Seconds of the first load and of the days after it; a column for each project."""
    first, *later = [[day[way]["seconds"] for way in ways] for day in days]
    by_way = list(zip(*later, strict=True)) or [(0.0,)] * len(ways)
    return [
        ["first load, s", *(f"{seconds:.1f}" for seconds in first)],
        ["a day, s", *(f"{fmean(seconds):.1f}" for seconds in by_way)],
        ["the longest day, s", *(f"{max(seconds):.1f}" for seconds in by_way)],
        ["all days, s", *(f"{sum(seconds):.0f}" for seconds in by_way)],
    ]


def _alone(path: Path, kind: str) -> str:
    if not path.exists():
        return ""
    stored = read(path)
    found, days = stored["results"], stored["results"]["days"][1:]
    seconds = ", ".join(f"{way} {fmean(day[way]['seconds'] for day in days):.1f} s" for way in found["ways"])
    share = max(found["shares"].values())
    where = f"scale factor {found['scale']:g}, days: {len(days)}, pyspark {stored['machine']['pyspark']}"
    return f"A day of {kind}, {share:.1%} of the rows: {seconds} ({where}).\n"


def _wrong(found: dict[str, dict[str, int]], ways: list[str]) -> list[list[str]]:
    models = sorted({model for rows in found.values() for model in rows})
    rows = [[model, *(f"{found.get(way, {}).get(model, 0):,}" for way in ways)] for model in models]
    count = ["models with wrong rows", *(str(len(found.get(way, {}))) for way in ways)]
    return [*rows, count]


def _strategies(days: list[dict[str, Any]]) -> str:
    total: dict[str, int] = {}
    for day in days:
        for strategy, count in day["differential"]["models"].items():
            total[strategy] = total.get(strategy, 0) + count
    return ", ".join(f"{count} {strategy}" for strategy, count in sorted(total.items(), key=lambda one: -one[1]))
