"""Plots of results, as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.results import geometric_mean

mpl.rcParams["svg.hashsalt"] = "benchmarks"  # the same results give the same file


def ratios(path: Path, kinds: Mapping[str, Mapping[str, float]]) -> None:
    """Rebuild / differential of each query, a group of bars for each kind of change."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    queries = list(next(iter(kinds.values())))
    width = 0.8 / len(kinds)
    for i, (kind, found) in enumerate(kinds.items()):
        places = [number + (i - (len(kinds) - 1) / 2) * width for number in range(len(queries))]
        axes.bar(places, [found[name] for name in queries], width, label=kind)
    axes.set_yscale("log")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(queries)), queries, rotation=60)
    axes.set_ylabel("rebuild / differential")
    figure.legend(loc="outside upper center", fontsize="small", ncols=len(kinds))
    figure.savefig(path, metadata={"Date": None})


def growth(path: Path, found: list[dict[str, Any]], kinds: list[str]) -> None:
    """Seconds and bytes read by scale factor, each against the first scale's, and the data's own growth."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    scales = [one["scale"] for one in found]
    for kind in kinds:
        names = [name for name, one in found[0][kind]["models"].items() if one["read_rows"]]
        for key, style in (("seconds", "-"), ("read_bytes", "--")):
            means = [geometric_mean(one[kind]["models"][name][key] for name in names) for one in found]
            axes.plot(scales, [mean / means[0] for mean in means], style, marker="o", label=f"{kind}: {_KEYS[key]}")
    axes.plot(scales, [one["size"] / found[0]["size"] for one in found], ":", color="grey", label="data")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("scale factor")
    axes.set_ylabel("times that of the smallest")
    figure.legend(loc="outside upper center", fontsize="small", ncols=4)
    figure.savefig(path, metadata={"Date": None})


_KEYS = {"seconds": "seconds", "read_bytes": "bytes read"}


def projects(path: Path, seconds: Mapping[str, Mapping[str, float]]) -> None:
    """Seconds of each kind of run, a bar for each project."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    names = list(next(iter(seconds.values())))
    width = 0.8 / len(names)
    for i, project in enumerate(names):
        places = [number + (i - (len(names) - 1) / 2) * width for number in range(len(seconds))]
        bars = axes.bar(places, [took[project] for took in seconds.values()], width, label=project)
        axes.bar_label(bars, fmt="%.0f", fontsize="x-small")
    axes.set_xticks(range(len(seconds)), list(seconds))
    axes.set_ylabel("seconds")
    figure.legend(loc="outside upper center", fontsize="small", ncols=4)
    figure.savefig(path, metadata={"Date": None})


def days(path: Path, seconds: Mapping[str, list[float]]) -> None:
    """The seconds of each project's runs up to each day, the first load included."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for project, took in seconds.items():
        axes.plot(range(len(took)), list(accumulate(took)), label=project)
    axes.set_xlabel("day")
    axes.set_ylabel("seconds up to it")
    axes.set_ylim(bottom=0)
    figure.legend(loc="outside upper center", fontsize="small", ncols=4)
    figure.savefig(path, metadata={"Date": None})
