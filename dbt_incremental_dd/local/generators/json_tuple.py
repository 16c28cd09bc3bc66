"""``json_tuple``: one row for each, with fields of a JSON object."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.functions.json_text import text_at
from dbt_incremental_dd.local.generators.generator import Generators
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact
from dbt_incremental_dd.local.vectors import constant_text
from dbt_incremental_dd.logical.expr import Expr


def _tuples(
    rows: Table, arguments: Sequence[exp.Expr], outputs: Sequence[str], constants: Constants, *, outer: bool
) -> Table:
    """The fields' names are constants."""
    text, *names = map(Expr.of, arguments)
    if len(names) != len(outputs) or any(name.refs for name in names):
        raise NotExact
    value = evaluate(rows, text, constants)
    found = [text_at(value, [constant_text(constants.value_of(name.sql))]) for name in names]
    return rows.with_columns([(output, one.data, one.type) for output, one in zip(outputs, found, strict=True)])


GENERATORS: Generators = {"json_tuple": _tuples}
