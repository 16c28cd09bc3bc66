"""A subscription as lines of text: JSON, CSV, or a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.core.time import format_time
from dbt_incremental_dd.subscribe.cursor import Cursor, Row
from dbt_incremental_dd.subscribe.json_values import json_value
from dbt_incremental_dd.subscribe.shape import STATE

PROGRESSED = "dd_progressed"
FORMATS = ("table", "json", "csv")


def lines(cursor: Cursor, schema: pa.Schema, form: str, *, progress: bool) -> Iterator[str]:
    """The format's header, if any, then a line for each row as it arrives."""
    change = STATE if STATE in schema.names else DIFF
    names = [name for name in schema.names if name not in (TIME, change)]
    write, header = _WRITERS[form](names, change, progress=progress)
    yield from header
    while rows := cursor.fetch(timeout=None):
        for row in rows:
            yield write(row)


_Writer = tuple[Callable[[Row], str], list[str]]


def _json(names: Sequence[str], change: str, *, progress: bool) -> _Writer:
    def write(row: Row) -> str:
        if row.values is None:
            return json.dumps({TIME: row.timestamp, PROGRESSED: True})
        return json.dumps({TIME: row.timestamp, change: _change(row), **json_value(row.values)})

    return write, []


def _csv(names: Sequence[str], change: str, *, progress: bool) -> _Writer:
    fields = [TIME, *([PROGRESSED] if progress else []), change, *names]

    def joined(values: Sequence[Any]) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="").writerow(values)
        return out.getvalue()

    def write(row: Row) -> str:
        values = row.values or {}
        progressed = [str(row.progressed).lower()] if progress else []
        return joined([row.timestamp, *progressed, _change(row), *(values.get(name) for name in names)])

    return write, [joined(fields)]


def _table(names: Sequence[str], change: str, *, progress: bool) -> _Writer:
    def write(row: Row) -> str:
        at = format_time(row.timestamp)
        if row.values is None:
            return f"{at}  -- nothing more before"
        cells = ("NULL" if row.values[name] is None else str(row.values[name]) for name in names)
        change = row.state if row.state is not None else f"{row.diff:+d}"
        return f"{at}  {change}  {'  '.join(cells)}"

    return write, [f"time  {change.removeprefix('dd_')}  {'  '.join(names)}"]


def _change(row: Row) -> int | str | None:
    return row.diff if row.state is None else row.state


_WRITERS = {"json": _json, "csv": _csv, "table": _table}
