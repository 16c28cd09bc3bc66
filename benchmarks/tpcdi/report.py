"""What ``benchmarks.tpcdi.run`` found, for ``docs/benchmarks.md``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import plots
from benchmarks.results import read, table

_OTHERS = {
    "tpcdi_deletes": "A day of deletes alone",
    "tpcdi_updates": "A day of updates alone",
}
"""Other results, where they are there."""


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
            *_larger(folder / "tpcdi_larger.json"),
            *_long(folder / "tpcdi_long.json"),
        )
    )


def summary(days: list[dict[str, Any]], ways: list[str]) -> list[list[str]]:
    """Seconds of the first load and of the runs after it, and what a run reads; a column for each project."""
    first, *later = days
    seconds = {way: [day[way]["seconds"] for day in later if way in day] or [0.0] for way in ways}
    rows = [
        ["first load, s", *(f"{first[way]['seconds']:.1f}" for way in ways)],
        ["a day, s", *(f"{fmean(seconds[way]):.1f}" for way in ways)],
        ["the longest day, s", *(f"{max(seconds[way]):.1f}" for way in ways)],
    ]
    if "read" not in first[ways[0]]:
        return rows
    for name, told in (("rows", "millions of rows that a day reads*"), ("bytes", "MB that a day reads*")):
        read_by = [[day[way]["read"][name] for day in later if "read" in day.get(way, {})] for way in ways]
        rows.append([told, *(f"{fmean(amounts) / 1e6:,.1f}" if amounts else "-" for amounts in read_by)])
    return rows


def _alone(path: Path, kind: str) -> str:
    """A paragraph of other days' results, where they are there."""
    if not path.exists():
        return ""
    stored = read(path)
    found, days = stored["results"], stored["results"]["days"][1:]
    means = {way: fmean(day[way]["seconds"] for day in days if way in day) for way in found["ways"]}
    seconds = ", ".join(f"{way} {mean:.1f} s" for way, mean in means.items())
    first = ", ".join(f"{way} {found['days'][0][way]['seconds']:.0f} s" for way in found["ways"])
    where = f"scale factor {found['scale']:g}, days: {len(days)}, pyspark {stored['machine']['pyspark']}"
    share = max(found["shares"].values())
    return f"{kind}, {share:.1%} of the rows: {seconds}; first load: {first} ({where}).\n"


def _larger(path: Path) -> Iterator[str]:
    """The same at another scale factor."""
    if not path.exists():
        return
    stored = read(path)
    found = stored["results"]
    days, ways = found["days"], found["ways"]
    tabled = [day for day in days[1:] if "table" in day]
    is_exact = not any(by_way["differential"] for by_way in found["wrong"].values())
    yield f"### Scale factor {found['scale']:g}\n"
    yield (
        f"{len(days) - 1} days of the same changes, `strategy: {found['strategy']}`, pyspark "
        f"{stored['machine']['pyspark']}; `table` ran on {len(tabled)} of them. On {', '.join(found['wrong'])} "
        f"{'every differential model is exact' if is_exact else 'differential models are WRONG'}. How they were "
        f"brought up to date: {_strategies(days[1:])}.\n"
    )
    yield table(
        ("", *ways),
        summary([{way: {"seconds": day[way]["seconds"]} for way in ways if way in day} for day in days], ways),
    )


def _long(path: Path) -> Iterator[str]:
    """What many days in a row take, and what their deltas read."""
    if not path.exists():
        return
    found = read(path)["results"]
    days, ways = found["days"], found["ways"]
    wrong = [day for day, by_way in found["wrong"].items() if by_way["differential"]]
    others = {model for by_way in found["wrong"].values() for model in by_way.get("duckdb", {})}
    yield f"### {len(days) - 1} days\n"
    yield (
        f"Scale factor {found['scale']:g}, `strategy: {found['strategy']}`. `duckdb` is the same warehouse, its "
        "selects translated, built anew by DuckDB from the same files, without dbt. `table` ran on the days of "
        f"comparisons alone. Comparisons, on {', '.join(found['wrong'])}: "
        f"{f'differential WRONG on {wrong}' if wrong else 'every differential model is exact'}; `duckdb` has other "
        f"rows in {', '.join(sorted(others)) or 'no model'}, since it divides decimals as doubles. How the "
        f"differential models were brought up to date: {_strategies(days[1:])}.\n"
    )
    rows = [["first load, s", *(f"{days[0][way]['seconds']:.1f}" for way in ways)]]
    for start in range(1, len(days), _TOGETHER):
        part = days[start : start + _TOGETHER]
        seconds = [[day[way]["seconds"] for day in part if way in day] for way in ways]
        means = (f"{fmean(took):.1f}" if took else "-" for took in seconds)
        rows.append([f"days {start} to {start + len(part) - 1}, s each", *means])
    yield table(("", *ways), rows)
    yield (
        "What the deltas read, a day. *Needed* are the changed rows of the inputs and the stored rows that have their "
        "keys; *read* are all rows of the pages and files that were looked into for them, in at least one column.\n"
    )
    yield table(("model", "changed rows in", "out", "needed", "read", "read / needed"), _reads(days[1:]))


_TOGETHER = 10


def _reads(days: list[dict[str, Any]]) -> list[list[str]]:
    """Of each model, a day, the most wasteful first."""
    by_model: dict[str, list[dict[str, int]]] = {}
    for day in days:
        for model, read_by in day["differential"]["by_model"].items():
            by_model.setdefault(model, []).append(read_by)
    means = {model: {name: fmean(one[name] for one in found) for name in found[0]} for model, found in by_model.items()}
    ratio = {model: mean["rows_read"] / max(mean["rows_found"], 1) for model, mean in means.items()}
    names = ("input_rows", "changed_out", "rows_found", "rows_read")
    return [
        [model, *(f"{means[model][name]:,.0f}" for name in names), f"{ratio[model]:.1f}"]
        for model in sorted(ratio, key=lambda model: -ratio[model])
    ]


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
