"""``docs/benchmarks.md``: tables and plots of the results that the benchmarks have written.

``python -m benchmarks.report``

Results are copied to ``docs/benchmarks``, and from there, with those of earlier runs, told in the page.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.limit import report as limit
from benchmarks.results import FOLDER, geometric_mean, read, table
from benchmarks.tpcdi import report as tpcdi

_INTRO = """# Benchmarks

What runs by deltas cost, always beside the alternative in the same process and session. Written by
`python -m benchmarks.report` from the JSON files in [docs/benchmarks](benchmarks), which `make bench` and the commands
below write; times are medians of the repeats.
"""


def main() -> int:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=FOLDER, help=f"(default: {FOLDER})")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="(default: docs)")
    options = parser.parse_args()
    kept = options.docs / "benchmarks"
    kept.mkdir(parents=True, exist_ok=True)
    parts = [_INTRO]
    for name, section in SECTIONS.items():
        if (options.results / f"{name}.json").exists():
            shutil.copy(options.results / f"{name}.json", kept)
        if (kept / f"{name}.json").exists():
            found = read(kept / f"{name}.json")
            parts.append(section(found["results"], kept))
            parts.append(_machine(found["machine"]))
    (options.docs / "benchmarks.md").write_text(_wrapped("\n".join(parts)))
    return 0


def _wrapped(text: str) -> str:
    """The page with its prose in lines of at most 100 characters; code stays in one line."""
    parts = text.split("\n\n")
    for i, part in enumerate(parts):
        if not part.lstrip("\n").startswith(("|", "#", "!")):
            whole = re.sub(r"`[^`]+`", lambda code: code[0].replace(" ", "\0"), part.strip("\n"))
            lines = textwrap.fill(whole, 100, break_long_words=False, break_on_hyphens=False).replace("\0", " ")
            parts[i] = part.replace(part.strip("\n"), lines)
    return "\n\n".join(parts)


def _machine(machine: dict[str, Any]) -> str:
    memory = machine["memory"] / (1 << 30)
    return f"Measured on {machine['cores']} cores, {memory:.0f} GiB, pyspark {machine['pyspark']}.\n"


def _refresh(found: dict[str, Any], folder: Path) -> str:
    rebuild = found["rebuild"]
    text = [
        f"## TPC-H under refreshes, scale factor {found['scale']:g}\n",
        f"`python -m benchmarks.tpch.refresh --scale {found['scale']:g}`: a share of the {found['orders']:,} orders "
        "and their lines is inserted, deleted and updated; each query's run by deltas against `CREATE TABLE AS` of the "
        "same SQL by Spark over the plain Parquet files. The sources' intake is shared by all models: it counts in the "
        "run, and in no query. Queries that no change touches have no ratio. "
        f"Refreshes counted of each kind: {found['repeats']}, after one to warm up.\n",
    ]
    kinds = {}
    for refresh in found["refreshes"]:
        kind = f"{refresh['where']}, {refresh['share']:.2%}"
        models = refresh["models"]
        touched = [name for name, one in models.items() if one.get("input_rows", one["read_rows"])]
        ratios = {name: rebuild[name]["seconds"] / models[name]["seconds"] for name in touched}
        kinds[kind] = ratios
        intake = refresh["intake"]["seconds"]
        whole = intake + sum(one["seconds"] for one in models.values())
        text.append(
            f"### {kind}\n\nThe whole run: **{whole:.1f} s**, of which intake {intake:.1f} s{_beside(refresh)}. "
            f"Geometric mean of rebuild / differential over the {len(touched)} queries touched: "
            f"**{geometric_mean(ratios.values()):.1f}**, lowest {min(ratios.values()):.1f}.\n"
        )
        rows = (_query(name, one, rebuild[name], ratios.get(name)) for name, one in models.items())
        text.append(table(_QUERY, rows))
    plots.ratios(folder / "tpch_refresh.svg", kinds)
    text.append("![Rebuild / differential by query](benchmarks/tpch_refresh.svg)\n")
    if "state" in found:
        text.append(_state(found["state"]))
    return "\n".join(text)


def _beside(refresh: dict[str, Any]) -> str:
    return f"; DuckDB rebuilds all in {refresh['duckdb']:.1f} s" if "duckdb" in refresh else ""


_QUERY = ("query", "differential s", "rebuild s", "ratio", "jobs", "rows read", "of", "MB read", "of", "rows written")


def _query(name: str, one: dict[str, float], plain: dict[str, float], ratio: float | None) -> list[str]:
    return [
        name,
        f"{one['seconds']:.2f}",
        f"{plain['seconds']:.2f}",
        "" if ratio is None else f"{ratio:.1f}",
        f"{one['jobs']:.0f}",
        f"{one['read_rows']:,.0f}",
        f"{plain['read_rows']:,.0f}",
        f"{one['read_bytes'] / 1e6:,.1f}",
        f"{plain['read_bytes'] / 1e6:,.1f}",
        f"{one['written_rows']:,.0f}",
    ]


def _state(state: dict[str, Any]) -> str:
    own = sum(state["own"].values())
    sources, models = sum(state["sources"].values()), sum(state["models"].values())
    largest = sorted(state["models"].items(), key=lambda item: -item[1])
    rows = [(name, f"{size / 1e6:,.1f}", f"{size / own:.3f}") for name, size in largest]
    return (
        f"### State\n\nAfter compaction {(sources + models) / 1e6:,.0f} MB for {own / 1e6:,.0f} MB of Parquet: "
        f"**{(sources + models) / own:.2f}**; the sources' collections {sources / own:.2f}, the models with their "
        f"states {models / own:.2f}. Driver memory at its peak, without the JVM: "
        f"{state['driver_memory'] / 1e6:,.0f} MB.\n\n" + table(("model", "MB", "of the sources' Parquet"), rows)
    )


def _scaling(found: list[dict[str, Any]], folder: Path) -> str:
    kinds = [kind for kind in ("recent", "random") if kind in found[0]]
    text = [
        "## The same change at several scale factors\n",
        f"`python -m benchmarks.tpch.scaling`: {found[0][kinds[0]]['changed']['orders']:,} orders "
        "inserted, deleted and updated together; geometric means over the queries that read anything.\n",
    ]
    rows = []
    for kind in kinds:
        for before, after in pairwise(found):
            growth = {
                key: geometric_mean(
                    after[kind]["models"][name][key] / one[key]
                    for name, one in before[kind]["models"].items()
                    if one["read_rows"]
                )
                for key in ("seconds", "read_bytes")
            }
            scales = f"{kind}, {before['scale']:g} to {after['scale']:g}"
            data = after["size"] / before["size"]
            rows.append((scales, f"{data:.1f}", f"{growth['seconds']:.2f}", f"{growth['read_bytes']:.2f}"))
    text.append(table(("scale factors", "data", "seconds", "bytes read"), rows))
    plots.growth(folder / "tpch_scaling.svg", found, kinds)
    text.append("![Seconds and bytes by scale factor](benchmarks/tpch_scaling.svg)\n")
    return "\n".join(text)


def _wide(found: dict[str, Any], folder: Path, name: str = "wide", title: str = "A wide project") -> str:
    seconds = found["seconds"]
    names = {
        "first": "first run",
        "nothing": "nothing changed",
        "small": "one small source changed",
        "all": f"all changed by {found['share']:.1%}",
    }
    projects = list(seconds["first"])
    rows = [(names[kind], *(f"{took[project]:.1f}" for project in projects)) for kind, took in seconds.items()]
    plots.projects(folder / f"{name}.svg", {names[kind]: seconds[kind] for kind in seconds})
    return "\n".join(
        (
            f"## {title}\n",
            f"`python -m benchmarks.wide.run --rows {found['rows']}`: 50 models in chains over 10 sources of "
            f"{found['rows']:,} rows (one of a hundredth), seconds of a whole `dbt run`, parsing included, of the same "
            "project in several materializations; `incremental` is written by hand over Delta tables.\n",
            table(("dbt run", *projects), rows),
            "Spark jobs of the differential project: {} in its first run, {} where nothing changed. The first run that "
            "needs Spark opens the session, which all later runs share{}.\n".format(
                *found["jobs"]["differential"][:2], "" if found["jobs"]["differential"][0] else ": here that of `table`"
            ),
            f"![Seconds of a dbt run](benchmarks/{name}.svg)\n",
        )
    )


def _snapshots(found: dict[str, Any], folder: Path) -> str:
    days, ways = found["days"], ("differential", "delta")
    rows = [["first, s", *(f"{days[0][way]:.1f}" for way in ways)]]
    rows += [[f"day {day}, s", *(f"{took[way]:.1f}" for way in ways)] for day, took in enumerate(days) if day]
    same = found["versions"]["differential"] == found["versions"]["delta"]
    return "\n".join(
        (
            "## A snapshot\n",
            f"`python -m benchmarks.snapshots --rows {found['rows']} --share {found['share']:g}`: dbt's snapshot of a "
            f"Delta table of {found['rows']:,} customers, strategy `timestamp`, `hard_deletes: invalidate`, kept here "
            f"and by dbt-spark (`delta`). {found['share']:.1%} of the rows change each day, a tenth as many come and "
            "go, by a MERGE that writes the table's file anew. Seconds are of whole `dbt snapshot` commands. "
            f"{'Both have the same versions at the end' if same else 'The versions DIFFER'}.\n",
            table(("", *ways), rows),
        )
    )


def _open_table(found: dict[str, Any], folder: Path) -> str:
    formats = found.get("formats", ["delta"])
    rows = []
    for refresh in found["refreshes"]:
        took = refresh["seconds"]
        for number, output in enumerate(formats, 1):
            ratios = [one[number] / one[0] for one in took.values()]
            plain, shown = (sum(one[i] for one in took.values()) for i in (0, number))
            told = (f"{plain:.2f}", f"{shown:.2f}", f"{shown / plain:.2f}", f"{geometric_mean(ratios):.2f}")
            wide = (f"{took['lines'][0]:.3f}", f"{took['lines'][number]:.3f}")
            rows.append([f"{refresh['where']}, {refresh['share']:.1%}", output, *told, *wide])
    stored, *tables = (sum(sizes) / 1e6 for sizes in zip(*found["bytes"].values(), strict=True))
    sizes = ", ".join(f"{size:.0f} MB of {output} tables" for output, size in zip(formats, tables, strict=True))
    head = ("changed", "output", "without, s", "with, s", "ratio", "mean ratio", "`lines` without, s", "with, s")
    return "\n".join(
        (
            f"## An open table beside the diff log, scale factor {found['scale']:g}\n",
            f"`python -m benchmarks.open_table --scale {found['scale']:g} --format {' '.join(formats)}`: TPC-H's 22 "
            "queries and a wide join (`lines`: a row for each line, with columns of its order and customer), each as a "
            "model without `output` and one with it, in turns in the same runs. Seconds are sums of all models' runs, "
            "without the intake that they share. The wide model is the worst case: its own delta is cheap, and each "
            "changed row is looked for in the table and written twice more: to the table and, with `delta`, to its "
            f"change feed. Files at the end: {stored:.0f} MB of collections, {sizes}.\n",
            table(head, rows),
        )
    )


def _floor(found: dict[str, float], folder: Path) -> str:
    parts = ("plan", "logs", "commit", "read", "write", "Spark", "relation", "other")
    rows = [(part, f"{found[part] * 1000:.0f}") for part in parts]
    return "\n".join(
        (
            "## Floor\n",
            "`python -m benchmarks.floor`: one new row in one aggregate model, warm: "
            f"{found['model'] * 1000:.0f} ms and {found['jobs']:.0f} Spark job(s), "
            f"**{found['model'] / found['one job']:.1f} times** a minimal Spark job in the same session "
            f"({found['one job'] * 1000:.0f} ms). Rows read, the model's own states included: "
            f"{found['read_rows']:.0f}.\n",
            table(("where the time goes", "ms"), rows),
        )
    )


def _incremental(found: dict[str, Any], folder: Path) -> str:
    return _wide(found, folder, "wide_incremental", "The wide project beside incremental models")


def _soak(found: dict[str, Any], folder: Path) -> str:
    head = ("runs so far", "s per run", "files", "MB", "files then", "MB then", "s for both")
    rows = [
        (
            row["runs"],
            f"{row['seconds']:.2f}",
            f"{row['files_before']:,}",
            f"{row['bytes_before'] / 1e6:.1f}",
            f"{row['files']:,}",
            f"{row['bytes'] / 1e6:.1f}",
            f"{row['compaction_seconds']:.1f}",
        )
        for row in found["rows"]
    ]
    return "\n".join(
        (
            "## Many small runs\n",
            f"`python -m benchmarks.soak --runs {found['rows'][-1]['runs']} --every {found['every']}`: 13 models over "
            "6 sources of every envelope, each changed a little before each run; then compaction with a minute of "
            "history, and vacuum. Two of the sources only grow. Files and bytes are of all that is stored; all "
            "was exact at the end.\n",
            table(head, rows),
        )
    )


def _following(found: dict[str, Any], folder: Path) -> str:
    fresh, economy, many = found["freshness"], found["economy"], found["many"]
    late = [
        (f"`{name}`", *(f"{fresh[name][part]:.2f}" for part in ("median", "p95")), fresh[name]["median in jobs"])
        for name in ("counter", "editors")
    ]
    wire = [
        (name, *(f"{economy[f'{name}: {part} bytes']:,}" for part in ("snapshot", "change")))
        for name in ("diffs", "by key", "selection")
    ]
    memory = [(when.removeprefix("memory "), f"{size / 1e6:.0f}") for when, size in many.items() if "memory" in when]
    return "\n".join(
        (
            "## Following\n",
            "`python -m benchmarks.following`. From 20 lines appended to a source's file to the batch at a web socket, "
            f"with `dbt-dd watch` at work, {fresh['rounds']} rounds, and as a multiple of one warm small Spark job "
            f"({fresh['job seconds']:.2f} s) in the same session:\n",
            table(("model", "median s", "p95 s", "median in jobs"), late),
            f"Bytes of a view of {economy['rows']:,} rows, and of a change of {economy['changed']} of them:\n",
            table(("subscription", "snapshot", "change"), wire),
            f"{many['subscribers']} subscribers of one view, each told of every one of 2,000 changes; the last of "
            f"them {many['median seconds']:.2f} s after the commit (p95 {many['p95 seconds']:.2f} s). The server's "
            "memory:\n",
            table(("", "MB"), memory),
        )
    )


def _subscribers(found: list[dict[str, Any]], folder: Path) -> str:
    head = ("protocol", "clients", "delivered", "p50 s", "p99 s", "max s", "MB at most", "threads", "CPU s per commit")
    rows = [
        (
            *(one["protocol"], f"{one['clients']:,}", f"{one['delivered']:,} of {one['expected']:,}"),
            *(f"{one[part]:.2f}" for part in ("p50", "p99", "max")),
            *(f"{one['memory at most'] / 1e6:.0f}", one["threads"], f"{one['CPU seconds'] / one['commits']:.2f}"),
        )
        for one in found
    ]
    before = min(one["memory before"] for one in found)
    return "\n".join(
        (
            "## Many subscribers\n",
            "`python -m benchmarks.subscribers`: all connect at once, then one commit comes each second. From the "
            "commit's time, which is taken before its file is written, to the client's having read all of it. Memory "
            f"({before / 1e6:.0f} MB before), threads and CPU seconds are the server's.\n",
            table(head, rows),
        )
    )


SECTIONS: dict[str, Callable[[Any, Path], str]] = {
    "tpch_refresh": _refresh,
    "tpch_scaling": _scaling,
    "tpcdi": tpcdi.section,
    "wide": _wide,
    "wide_incremental": _incremental,
    "snapshots": _snapshots,
    "open_table": _open_table,
    "limit": limit.section,
    "floor": _floor,
    "soak": _soak,
    "following": _following,
    "subscribers": _subscribers,
}


if __name__ == "__main__":
    sys.exit(main())
