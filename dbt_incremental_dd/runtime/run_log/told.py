"""A model's last run as text: by which strategy and why, by phase, and by operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow.compute as pc

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.profile import PHASES
from dbt_incremental_dd.core.time import format_time
from dbt_incremental_dd.runtime.run_log.columns import FAILED, OPERATORS, RUNS, Row
from dbt_incremental_dd.trace.arrow_reader import contents
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.progress import size_text

_WIDTH = 64
"""Characters of an operator."""
_HEADS = ("operator", "seconds", "own", "calls", "rows in", "rows out", "rows read", "bytes read")


def explain_last_run(storage: Storage, model: str) -> str:
    """What the last run of the model that had something to do did. Raises StateError if none is noted."""
    runs = _rows(storage, RUNS, model)
    if not runs:
        raise StateError(
            f"no run of {model} is noted in {RUNS}",
            "Run it: a run that changes something is noted, unless the profile says keep_runs: false.",
        )
    last = max(runs, key=lambda row: row["began"])
    operators = [row for row in _rows(storage, OPERATORS, model) if row["began"] == last["began"]]
    operators = [row for row in operators if row["invocation"] == last["invocation"]]
    return "\n".join([*_summary(last), *_table(sorted(operators, key=lambda row: row["number"]))])


def _rows(storage: Storage, name: str, model: str) -> list[Row]:
    place = storage.collection(name)
    log = place.log()
    if log is None:
        return []
    found = contents(place, log.frontiers.last)
    rows: list[Row] = found.filter(pc.equal(found["model"], model)).to_pylist()
    return rows


def _summary(run: Row) -> Iterator[str]:
    why = f": {run['why']}" if run["why"] else ""
    yield f"{run['model']}: {run['strategy']}{why}, {run['seconds']:.3f} s, began {format_time(run['began'])}"
    phases = [(name, run[f"{name}_seconds"]) for name in PHASES]
    yield "Phases: " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in phases if seconds is not None)
    if run["strategy"] == FAILED:
        yield f"Error: {run['error']}"
        return
    held = f", held back by {run['held_back_by']}" if run["held_back_by"] else ""
    behind = f"{run['lag'] / 1000:.1f} s behind the clock, {run['input_lag'] / 1000:.1f} s behind its inputs"
    yield f"Shows {format_time(run['as_of'])}: {behind}{held}"
    yield (
        f"Updates: {run['updates_in']:,} in, {run['updates_out']:,} out; "
        f"rows: {run['rows_added']:,} added, {run['rows_removed']:,} removed"
    )
    yield (
        f"Read: {run['rows_read']:,} rows ({run['rows_found']:,} of them sought), {size_text(run['bytes_read'])}; "
        f"written: {run['rows_written']:,} updates, {size_text(run['bytes_written'])}"
    )
    if run["fallbacks"]:
        yield f"Fallbacks: {run['fallbacks']}"


def _table(operators: Sequence[Row]) -> Iterator[str]:
    """A line for each operator, those that it reads indented below it."""
    depths: dict[int | None, int] = {None: -1}
    lines: list[tuple[str, ...]] = [_HEADS]
    for row in operators:
        depth = depths[row["number"]] = depths[row["parent"]] + 1
        text = f"{'  ' * depth}{row['detail'] or row['operator']}"
        counts = (row[name] for name in ("calls", "rows_in", "rows_out", "rows_read"))
        lines.append(
            (
                text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}...",
                f"{row['seconds']:.3f}",
                f"{row['own_seconds']:.3f}",
                *("?" if count is None else f"{count:,}" for count in counts),
                size_text(row["bytes_read"]),
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADS))]
    for first, *others in lines if operators else ():
        cells = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *cells])
