"""GROUP BY: which keys it names, and in which sets they group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.aggregate import (
    Aggregation,
    aggregation,
    find_aggregates,
    form,
    key_columns,
    with_columns,
)
from dbt_incremental_dd.frontend.block import has_subquery
from dbt_incremental_dd.frontend.resolve import Found, Lookup, resolve
from dbt_incremental_dd.frontend.scope import Ids
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Map, Union

Items = Sequence[tuple[str, exp.Expr]]
Keys = tuple[exp.Expr, ...]
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


class Grouping:
    """What a SELECT groups by. ``sets`` is None for plain GROUP BY, else one tuple of keys for each set."""

    def __init__(
        self,
        group: exp.Group | None,
        items: Items,
        look: Lookup,
        without_subqueries: Callable[[exp.Expr], exp.Expr],
    ) -> None:
        self._items = items
        self._look = look
        self._without_subqueries = without_subqueries
        self.is_given = group is not None
        self.all = bool(group is not None and group.args.get("all"))
        self.sets: list[Keys] | None = None
        self.keys: Keys = ()
        if group is not None:
            self._read(group)

    def _read(self, group: exp.Group) -> None:
        if group.args.get("totals"):
            raise UnsupportedSQL("GROUP BY WITH TOTALS")
        if self.all:
            if self._look(("all",)) is not None:
                raise UnsupportedSQL("GROUP BY ALL beside a column called all", "Give the column another name.")
            self.keys = tuple(value for _, value in self._items if not find_aggregates([value]))
            return
        parts = list(group.expressions)
        for clause in ("rollup", "cube", "grouping_sets"):
            for sets in group.args.get(clause) or ():
                # WITH ROLLUP and WITH CUBE are over all keys; so is the list before GROUPING SETS, which it only names.
                self.keys = tuple(key for part in parts for key in self._plain(part))
                parts = [sets if sets.expressions else type(sets)(expressions=parts)]
        self.keys = _distinct((*self.keys, *(key for part in parts for key in self._plain(part))))
        if any(isinstance(part, _SETS) for part in parts):
            choices = [self._sets_of(part) for part in parts]
            self.sets = [_distinct(key for keys in choice for key in keys) for choice in product(*choices)]

    def _plain(self, part: exp.Expr) -> Keys:
        """All keys that an element of GROUP BY names."""
        if isinstance(part, _SETS):
            return tuple(key for inner in part.expressions for key in self._plain(inner))
        if isinstance(part, exp.Paren) and isinstance(part.this, exp.Tuple):
            part = part.this
        if isinstance(part, exp.Tuple):
            return tuple(self._key(inner) for inner in part.expressions)
        return (self._key(part),)

    def _sets_of(self, part: exp.Expr) -> list[Keys]:
        if isinstance(part, exp.GroupingSets):
            return [keys for inner in part.expressions for keys in self._sets_of(inner)]
        if isinstance(part, exp.Rollup):
            units = [self._plain(inner) for inner in part.expressions]
            return [sum(units[:length], ()) for length in range(len(units), -1, -1)]
        if isinstance(part, exp.Cube):
            units = [self._plain(inner) for inner in part.expressions]
            chosen = [c for length in range(len(units), -1, -1) for c in combinations(units, length)]
            return [sum(choice, ()) for choice in chosen]
        return [self._plain(part)]

    def _key(self, tree: exp.Expr) -> exp.Expr:
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.Literal) and tree.is_int:
            value = self._items[int(tree.this) - 1][1]
            if find_aggregates([value]):
                raise UnsupportedSQL("GROUP BY of an aggregate")
            return value
        return resolve(self._without_subqueries(tree) if has_subquery(tree) else tree, self._look)

    def change(self, rewrite: Callable[[exp.Expr], exp.Expr]) -> None:
        """Applies a rewriting to every key."""
        self.keys = tuple(rewrite(key) for key in self.keys)
        if self.sets is not None:
            self.sets = [tuple(rewrite(key) for key in keys) for keys in self.sets]

    def in_having(self, inputs: Lookup, aliases: Lookup) -> Lookup:
        """Names in HAVING, outside of aggregates: group keys come first, then aliases."""
        columns = {Expr.of(key).as_column for key in self.keys}
        within = {ref for key in self.keys if Expr.of(key).as_column is None for ref in Expr.of(key).refs}

        def look(parts: tuple[str, ...]) -> Found | None:
            found, alias = inputs(parts), aliases(parts)
            if found is None or alias is None:
                return found or alias
            id = found[0].name
            if id in within and id not in columns:
                raise UnsupportedSQL(f"{'.'.join(parts)} in HAVING may be a column or an alias", "Rename the alias.")
            return found if id in columns else alias

        return look


def keys_with_subqueries(group: exp.Group | None) -> list[exp.Expr]:
    """The keys, as they are written, in which a subquery stands."""
    found: list[exp.Expr] = []
    parts = [part for clause in group.args.values() if isinstance(clause, list) for part in clause] if group else []
    while parts:
        part = parts.pop()
        if isinstance(part, (*_SETS, exp.Tuple)):
            parts += part.expressions
        elif isinstance(part, exp.Paren):
            parts.append(part.this)
        elif has_subquery(part):
            found.append(part)
    return found


def lower_aggregation(node: Node, grouping: Grouping, calls: Sequence[exp.Expr], ids: Ids) -> Aggregation:
    """The plan of GROUP BY and aggregates; grouping sets are the union of one Reduce for each."""
    node, keys = key_columns(node, grouping.keys, ids)
    if grouping.sets is None:
        return aggregation(node, keys, calls, global_row=not keys and (not grouping.is_given or grouping.all), ids=ids)
    markers = {form(call): call for call in calls if _is_marker(call)}
    aggregates = [call for call in calls if not _is_marker(call)]
    forms = list(keys)
    names = [*forms, *dict.fromkeys(form(call) for call in aggregates), *markers]
    branches = []
    for chosen in grouping.sets:
        held = {form(key) for key in chosen}
        made = _one_set(
            node, {key: keys[key] for key in forms if key in held}, aggregates, alone=grouping.sets == [()], ids=ids
        )
        values = {name: Expr.column(made.known[name]) for name in names if name in made.known}
        values |= {name: _marker(call, forms, held) for name, call in markers.items()}
        branches.append(Map(made.node, tuple((ids.new(), values.get(name, Expr("NULL"))) for name in names)))
    union = Union(tuple(branches), tuple(ids.new() for _ in names))
    return Aggregation(union, dict(zip(names, union.ids, strict=True)))


def _one_set(node: Node, keys: Mapping[str, Id], calls: Sequence[exp.Expr], *, alone: bool, ids: Ids) -> Aggregation:
    """One of the sets. The empty one has no row over nothing, unless it is the only one."""
    if keys or alone:
        return aggregation(node, keys, calls, global_row=alone, ids=ids)
    one = ids.new()
    return aggregation(with_columns(node, [(one, Expr("1"))]), {"": one}, calls, global_row=False, ids=ids)


def _is_marker(call: exp.Expr) -> bool:
    return isinstance(call, exp.Anonymous) and str(call.this).lower() in ("grouping", "grouping_id")


def _marker(call: exp.Expr, forms: list[str], held: set[str]) -> Expr:
    """``grouping(k)``: whether k is left out; ``grouping_id()``: that of all keys, the first as the highest bit."""
    wanted = [form(argument) for argument in call.expressions] or forms
    if any(name not in forms for name in wanted):
        raise UnsupportedSQL("grouping() of what is not grouped")
    bits = sum((name not in held) << place for place, name in enumerate(reversed(wanted)))
    return Expr(f"CAST({bits} AS {'TINYINT' if str(call.this).lower() == 'grouping' else 'BIGINT'})")


def _distinct(keys: object) -> Keys:
    return tuple({form(key): key for key in keys}.values())  # type: ignore[attr-defined]


__all__ = ["Grouping", "keys_with_subqueries", "lower_aggregation"]
