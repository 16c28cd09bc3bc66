"""Equal rows as one, their diffs summed, by DuckDB: also of nested columns, and of more rows than Arrow groups well."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dbt_incremental_dd.duck.connections import database
from dbt_incremental_dd.trace.maps import by_key


def sums(updates: pa.Table, diffs: Sequence[str]) -> pa.Table:
    """Each distinct row once, with the sums of its ``diffs``, whatever these are; columns and types stay.

    Rows are equal as in GROUP BY: NULL equals NULL, NaN equals NaN, 0.0 equals -0.0, and a map's entries have no order.
    Raises DuckDB's error or
    pyarrow.ArrowInvalid for sums that do not fit their type.
    """
    # Two columns may differ in the case of their names alone.
    aliases = {name: f"c{number}" for number, name in enumerate(updates.column_names)}
    selected = ", ".join(f"sum({alias}) AS {alias}" if name in diffs else alias for name, alias in aliases.items())
    grouped = ", ".join(alias for name, alias in aliases.items() if name not in diffs)
    with database() as connection:
        connection.register("updates", by_key(updates).rename_columns(list(aliases.values())))
        found = connection.sql(f"SELECT {selected} FROM updates GROUP BY {grouped}").to_arrow_table()
    return found.rename_columns(updates.column_names).cast(updates.schema)
