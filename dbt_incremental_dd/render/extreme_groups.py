"""Minima and maxima inside a recursion: compared with what a group had, recomputed only where that may have gone.

What came is the group's new value where nothing of before was beyond it; what was there stays where only lesser values
went. In any other group that lost rows the extreme has to be found anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, Type
from dbt_incremental_dd.differential.iterate import Variable
from dbt_incremental_dd.differential.reduce import Accumulate, Extreme
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.render.rows import Rows, filtered
from dbt_incremental_dd.trace.arrow import arrow_type, is_ordered
from dbt_incremental_dd.trace.duck import database
from dbt_incremental_dd.trace.local import Local

_OLD, _NEW, _VALUE = "dd_old_", "dd_new_", "dd_value_"
_WAS, _IS, _LOST = "dd_was", "dd_is", "dd_lost"


@dataclass(frozen=True)
class Compared:
    """The touched groups' rows before and now; and the keys of those groups whose rows of now have to be found anew,
    which are not among them."""

    old: Rows | None
    new: Rows | None
    lost: Rows | None


def is_extreme(variable: Variable) -> bool:
    """Whether the variable is nothing but minima and maxima of groups."""
    node = variable.accumulate
    if node is None or not node.extremes or node.accumulators or node.global_row or not node.keys:
        return False
    return all(sql == id for id, sql in node.outputs)


def compare(context: Context, node: Accumulate, touched: Rows, change: Rows | None, former: Rows | None) -> Compared:
    """``touched``: the groups' keys, equal ones perhaps; ``change``: the input's rows that came and went, consolidated;
    ``former``: the groups' rows before."""
    if change is None:
        return Compared(former, former, None)
    relations = {"touched": touched, "change": change} | ({} if former is None else {"former": former})
    sql = _query(node, former is not None)
    compared = _in_duckdb(context, node, relations, sql) or _in_spark(context, node, relations, sql)
    return _parts(node, compared, former)


def _query(node: Accumulate, has_former: bool) -> str:
    """For each touched group: whether it was there and is, old and new extremes, and whether they are lost."""
    keys = ", ".join(node.keys)
    came = [f"{_best(e)}(CASE WHEN {DIFF} > 0 THEN {_VALUE}{e.id} END) AS dd_in_{e.id}" for e in node.extremes]
    went = [f"{_best(e)}(CASE WHEN {DIFF} < 0 THEN {_VALUE}{e.id} END) AS dd_out_{e.id}" for e in node.extremes]
    some = [f"max({DIFF}) > 0 AS dd_comes", f"min({DIFF}) < 0 AS dd_goes"]
    summed = f"SELECT {keys}, {', '.join((*came, *went, *some))} FROM change GROUP BY {keys}"
    former = "former" if has_former else f"(SELECT {_nulls(node)} FROM change WHERE 1 = 0)"
    rows = (
        f"SELECT {', '.join(f't.{key}' for key in node.keys)}, f.{DIFF} IS NOT NULL AS {_WAS}, "
        f"{', '.join(f'f.{e.id} AS {_OLD}{e.id}, s.dd_in_{e.id}, s.dd_out_{e.id}' for e in node.extremes)}, "
        "coalesce(s.dd_comes, false) AS dd_comes, coalesce(s.dd_goes, false) AS dd_goes "
        f"FROM (SELECT DISTINCT {keys} FROM touched) AS t "
        f"LEFT JOIN {former} AS f ON {_same(node, 't', 'f')} LEFT JOIN ({summed}) AS s ON {_same(node, 't', 's')}"
    )
    lost = " OR ".join(_lost(e) for e in node.extremes)
    new = ", ".join(
        f"CASE WHEN {_OLD}{e.id} IS NULL THEN dd_in_{e.id} WHEN dd_in_{e.id} IS NULL THEN {_OLD}{e.id} "
        f"WHEN dd_in_{e.id} {_beyond(e)} {_OLD}{e.id} THEN dd_in_{e.id} ELSE {_OLD}{e.id} END AS {_NEW}{e.id}"
        for e in node.extremes
    )
    old = ", ".join(f"{_OLD}{e.id}" for e in node.extremes)
    is_ = f"({_WAS} OR dd_comes) AS {_IS}"
    return f"SELECT {keys}, {_WAS}, {old}, {new}, {is_}, (dd_goes AND ({lost})) AS {_LOST} FROM ({rows}) AS r"


def _best(e: Extreme) -> str:
    return "max" if e.maximum else "min"


def _beyond(e: Extreme) -> str:
    return ">=" if e.maximum else "<="


def _lost(e: Extreme) -> str:
    """Whether what went may have been the extreme, and what came does not make that up."""
    old, came, went = f"{_OLD}{e.id}", f"dd_in_{e.id}", f"dd_out_{e.id}"
    hit = f"({old} IS NULL OR coalesce({went} {_beyond(e)} {old}, false))"
    return f"(NOT coalesce({came} {_beyond(e)} {old}, false) AND {hit})"


def _nulls(node: Accumulate) -> str:
    values = [f"CAST(NULL AS {e.dtype}) AS {e.id}" for e in node.extremes]
    return ", ".join((*node.keys, *values, DIFF))


def _same(node: Accumulate, one: str, other: str) -> str:
    return " AND ".join(f"{one}.{key} IS NOT DISTINCT FROM {other}.{key}" for key in node.keys)


def _in_duckdb(context: Context, node: Accumulate, relations: Mapping[str, Rows], sql: str) -> Rows | None:
    """On the driver; None where not all is there, or of types that DuckDB might compare otherwise."""
    tables: dict[str, pa.Table] = {}
    for name, rows in relations.items():
        local = rows.source
        if not isinstance(local, Local):
            return None
        tables[name] = local.table
    change = relations["change"].source
    assert isinstance(change, Local)
    values = {_VALUE + e.id: evaluate(change, e.value) for e in node.extremes}
    found = {name: value for name, value in values.items() if value is not None}
    schema = Schema((*change.schema.select(node.keys), *(Column(name, v.type) for name, v in found.items())))
    if len(found) < len(values) or not is_ordered(schema):
        return None
    for name, value in found.items():
        tables["change"] = tables["change"].append_column(name, value.data)
    extremes = {e.id: found[_VALUE + e.id].type for e in node.extremes}
    made = _schema(change.schema.select(node.keys), extremes)
    with database() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        try:
            table = connection.sql(sql).to_arrow_table()
        except duckdb.Error:
            return None
    table = table.cast(pa.schema([(c.name, arrow_type(c.type)) for c in made]))
    return Rows(Local(context.spark, table, made), table.num_rows)


def _schema(keys: Schema, types: Mapping[str, Type]) -> Schema:
    old = (Column(_OLD + id, type) for id, type in types.items())
    new = (Column(_NEW + id, type) for id, type in types.items())
    flags = (Column(_IS, BOOLEAN), Column(_LOST, BOOLEAN))
    return Schema((*keys, Column(_WAS, BOOLEAN), *old, *new, *flags))


def _in_spark(context: Context, node: Accumulate, relations: Mapping[str, Rows], sql: str) -> Rows:
    frames = {name: rows.frame for name, rows in relations.items()}
    values = (f"{e.value.sql} AS {_VALUE}{e.id}" for e in node.extremes)
    frames["change"] = frames["change"].selectExpr(*node.keys, *values, DIFF)
    views = ", ".join(f"{name} AS (SELECT * FROM {context.view(frame)})" for name, frame in frames.items())
    estimate = relations["touched"].estimate
    return context.materialize(Rows(context.spark.sql(f"WITH {views} {sql}"), estimate))


def _parts(node: Accumulate, compared: Rows, former: Rows | None) -> Compared:
    def rows(prefix: str, condition: str) -> Rows:
        kept = filtered(compared, Expr(condition))
        return _counted(kept, [*((k, k) for k in node.keys), *((id, prefix + id) for id, _ in node.outputs)])

    old = None if former is None else rows(_OLD, _WAS)
    lost = _counted(filtered(compared, Expr(_LOST)), [(key, key) for key in node.keys])
    return Compared(old, rows(_NEW, f"{_IS} AND NOT {_LOST}"), lost)


def _counted(rows: Rows, pairs: list[tuple[str, str]]) -> Rows:
    """Columns of the rows, each row once."""
    local = rows.source
    if not isinstance(local, Local):
        frame = local.selectExpr(*(f"{source} AS {name}" for name, source in pairs), f"1L AS {DIFF}")
        return Rows(frame, rows.estimate, positive=True, consolidated=True)
    types = {column.name: column.type for column in local.schema}
    table = local.table.select([source for _, source in pairs]).rename_columns([name for name, _ in pairs])
    table = table.append_column(DIFF, pa.array([1] * table.num_rows, pa.int64()))
    schema = Schema((*(Column(name, types[source]) for name, source in pairs), DIFF_COLUMN))
    return Rows(Local(local.spark, table, schema), table.num_rows, positive=True, consolidated=True)
