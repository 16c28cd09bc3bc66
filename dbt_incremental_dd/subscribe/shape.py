"""The shape in which a subscriber gets a collection's updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import DIFF, TIME

if TYPE_CHECKING:
    from dbt_incremental_dd.subscribe.condition import Condition
    from dbt_incremental_dd.subscribe.selection import Selection

STATE = "dd_state"
UPSERT, DELETE, KEY_VIOLATION = "upsert", "delete", "key_violation"


@dataclass(frozen=True)
class Shape:
    """All columns, or a ``selection``; as diffs, or with a ``key`` as each key's new state. ``readable`` selects the
    rows that the subscriber may read, before all else.

    With a key, dd_state replaces dd_diff, and the key's columns come first: ``upsert`` with the key's new row,
    ``delete``, or ``key_violation`` if the change alone shows several rows; like Materialize's ENVELOPE UPSERT.
    """

    selection: Selection | None = None
    key: tuple[str, ...] = ()
    readable: Condition | None = None

    def apply(self, updates: pa.Table) -> pa.Table:
        """The updates in this shape. ``updates``: visible columns, dd_time, dd_diff. Raises QueryError if the selection
        cannot be computed, ConfigError if a key column is not selected, ConditionError if ``readable`` cannot be
        computed."""
        selected = updates if self.readable is None else self.readable.apply(updates)
        selected = selected if self.selection is None else self.selection.apply(selected)
        return _by_key(selected, self.key) if self.key else selected


def _by_key(updates: pa.Table, key: tuple[str, ...]) -> pa.Table:
    data = [name for name in updates.column_names if name not in (TIME, DIFF)]
    known = {name.lower(): name for name in data}
    missing = [name for name in key if name.lower() not in known]
    if missing:
        raise ConfigError(f"there is no column {', '.join(missing)} to be a KEY", f"Known: {', '.join(data)}.")
    keys = [known[name.lower()] for name in key]
    order = [*keys, *(name for name in data if name not in keys)]
    plain = updates.select([*order, TIME, DIFF]).rename_columns([*(f"c{i}" for i in range(len(order))), "t", "d"])
    from dbt_incremental_dd.duck.connections import confined

    with confined() as connection:
        connection.register("updates", plain)
        found = connection.sql(_upserts(len(keys), len(order))).to_arrow_table()
    return found.rename_columns([*order, TIME, STATE])


def _upserts(keys: int, columns: int) -> str:
    """One row for each time and key of ``updates(c0, c1, ..., t, d)``."""
    grouped = ", ".join(f"c{i}" for i in range(keys))
    now = "".join(f", first(c{i}) FILTER (d > 0) AS c{i}" for i in range(keys, columns))
    came, went = "coalesce(sum(d) FILTER (d > 0), 0)", "coalesce(sum(d) FILTER (d < 0), 0)"
    state = (
        f"CASE WHEN {came} = 1 AND {went} >= -1 THEN '{UPSERT}' "
        f"WHEN {came} = 0 AND {went} = -1 THEN '{DELETE}' ELSE '{KEY_VIOLATION}' END"
    )
    groups = f"SELECT {grouped}{now}, t, {state} AS state FROM updates GROUP BY t, {grouped}"
    shown = "".join(f", CASE WHEN state = '{UPSERT}' THEN c{i} END AS c{i}" for i in range(keys, columns))
    return f"SELECT {grouped}{shown}, t, state FROM ({groups}) ORDER BY t"
