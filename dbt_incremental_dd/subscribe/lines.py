"""A subscription as lines of text: JSON, CSV, or a table that is read as it comes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.core.time import format_time
from dbt_incremental_dd.subscribe.cursor import Cursor, Row

PROGRESSED = "dd_progressed"
FORMATS = ("table", "json", "csv")


def lines(cursor: Cursor, names: Sequence[str], form: str, progress: bool) -> Iterator[str]:
    """A header where the format has one, and a line for each row, as long as they come. ``names`` of the data."""
    write, header = _WRITERS[form](names, progress)
    yield from header
    while rows := cursor.fetch(timeout=None):
        for row in rows:
            yield write(row)


def _json(names: Sequence[str], progress: bool) -> tuple[Callable[[Row], str], list[str]]:
    def write(row: Row) -> str:
        if row.values is None:
            return json.dumps({TIME: row.timestamp, PROGRESSED: True})
        return json.dumps({TIME: row.timestamp, DIFF: row.diff, **row.values}, default=str)

    return write, []


def _csv(names: Sequence[str], progress: bool) -> tuple[Callable[[Row], str], list[str]]:
    fields = [TIME, *([PROGRESSED] if progress else []), DIFF, *names]

    def joined(values: Sequence[Any]) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="").writerow(values)
        return out.getvalue()

    def write(row: Row) -> str:
        values = row.values or {}
        told = [str(row.progressed).lower()] if progress else []
        return joined([row.timestamp, *told, row.diff, *(values.get(name) for name in names)])

    return write, [joined(fields)]


def _table(names: Sequence[str], progress: bool) -> tuple[Callable[[Row], str], list[str]]:
    def write(row: Row) -> str:
        at = format_time(row.timestamp)
        if row.values is None:
            return f"{at}  -- nothing more before"
        cells = ("NULL" if row.values[name] is None else str(row.values[name]) for name in names)
        return f"{at}  {row.diff:+d}  {'  '.join(cells)}"

    return write, [f"time  diff  {'  '.join(names)}"]


_WRITERS = {"json": _json, "csv": _csv, "table": _table}
