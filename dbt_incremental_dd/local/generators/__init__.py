"""Generators on the driver, by name: one family a file."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dbt_incremental_dd.local.generators import entries, json_tuple, stack
from dbt_incremental_dd.local.generators.generator import Generators
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact
from dbt_incremental_dd.logical.expr import Expr

_GENERATORS: Generators = {**entries.GENERATORS, **json_tuple.GENERATORS, **stack.GENERATORS}
NAMES = frozenset(_GENERATORS)
"""In lower case."""


def generated(rows: Table, call: Expr, outputs: Sequence[str], constants: Constants, *, outer: bool) -> Table:
    """As ``Engine.generate`` says. Raises NotExact."""
    tree = call.tree
    generate = _GENERATORS.get(str(tree.this).lower()) if isinstance(tree, exp.Anonymous) else None
    if generate is None:
        raise NotExact(call.sql)
    return generate(rows, tree.expressions, outputs, constants, outer=outer)
