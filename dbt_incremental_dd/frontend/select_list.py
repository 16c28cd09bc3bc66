"""The select list: stars written out, names, and what aliases stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.types import Struct, Type
from dbt_incremental_dd.frontend.generators import is_generator
from dbt_incremental_dd.frontend.resolve import Lookup, first_of, in_aliases, resolve, resolved_column
from dbt_incremental_dd.frontend.scope import Ids, Scope
from dbt_incremental_dd.logical.node import Id

GeneratorNames = Callable[[int, int], tuple[str, ...]]
"""The names of the columns that a generator makes at a position, among how many other columns."""


class Item(NamedTuple):
    """A column of the select list; its name is empty where only Spark knows it."""

    name: str
    value: exp.Expr


class SelectList:
    """``items`` in order; a generator's columns stand among them as the ids ``generated``."""

    def __init__(
        self,
        scope: Scope,
        inputs: Lookup,
        ids: Ids,
        types: Mapping[Id, Type],
        without_subqueries: Callable[[exp.Expr], exp.Expr],
    ) -> None:
        self._types = types
        self._scope = scope
        self._inputs = inputs
        self._ids = ids
        self._without_subqueries = without_subqueries
        self.items: list[Item] = []
        self.aliases: dict[str, exp.Expr] = {}
        self.generator: exp.Expr | None = None
        self.generated: tuple[Id, ...] = ()

    def read(self, trees: Sequence[exp.Expr], names: GeneratorNames) -> None:
        """Takes in all of the list."""
        calls = [tree for tree in trees if is_generator(tree.this if _is_alias(tree) else tree)]
        if len(calls) > 1:
            raise UnsupportedSQL("several generators in one select list", "Use LATERAL VIEW.")
        unnamed: int | None = None
        for tree in trees:
            if not any(tree is call for call in calls):
                self.items += self._item(tree)
            elif _is_alias(tree):
                self._named_generator(tree)
            else:
                unnamed = len(self.items)
        if unnamed is not None:
            self._generate(calls[0], unnamed, names(unnamed, len(self.items)))

    def _named_generator(self, tree: exp.Expr) -> None:
        """A generator whose columns have names can be referred to by what follows."""
        names = [name.name for name in tree.expressions] if isinstance(tree, exp.Aliases) else [tree.alias]
        self._generate(tree.this, len(self.items), tuple(names))

    def _generate(self, call: exp.Expr, at: int, names: tuple[str, ...]) -> None:
        self.generator = resolve(self._without_subqueries(call), self._look(), self._scope)
        self.generated = tuple(self._ids.new() for _ in names)
        made = [Item(name, resolved_column(id)) for name, id in zip(names, self.generated, strict=True)]
        self.items[at:at] = made
        self.aliases |= {item.name.lower(): item.value for item in made}

    def _look(self) -> Lookup:
        return first_of(self._inputs, in_aliases(self.aliases))

    def _item(self, tree: exp.Expr) -> list[Item]:
        star = tree.this if isinstance(tree, exp.Column) else tree
        if isinstance(star, exp.Star):
            return self._star(tree, star)
        value = tree.this if isinstance(tree, exp.Alias) else tree
        resolved = resolve(self._without_subqueries(value), self._look(), self._scope)
        if isinstance(tree, exp.Alias):
            self.aliases[tree.alias.lower()] = resolved
        return [Item(_name(tree), resolved)]

    def _star(self, tree: exp.Expr, star: exp.Star) -> list[Item]:
        if star.args.get("replace") or star.args.get("rename"):
            raise UnsupportedSQL("* REPLACE or RENAME")
        qualifier = tuple(part.name for part in tree.parts[:-1]) if isinstance(tree, exp.Column) else ()
        columns = self._scope.star(qualifier)
        if columns is None:
            return _without(star, self._fields(qualifier))
        left_out = {self._left_out(item) for item in star.args.get("except_") or ()}
        return [Item(c.name, resolved_column(c.id)) for c in columns if c.id not in left_out]

    def _left_out(self, item: exp.Expr) -> Id:
        """The column that stands behind EXCEPT."""
        found = self._scope.find(_parts(item))
        if found is None:
            raise UnsupportedSQL(f"* EXCEPT ({'.'.join(_parts(item))}), which is no column", "Correct its spelling.")
        if found[1]:
            raise UnsupportedSQL("* EXCEPT of a field")
        return found[0]

    def _fields(self, name: tuple[str, ...]) -> list[Item]:
        """The fields of a struct, as ``s.*`` has them."""
        found = self._scope.find(name)
        struct = self._types.get(found[0]) if found and not found[1] else None
        if found is None or not isinstance(struct, Struct):
            raise UnsupportedSQL(f"{'.'.join(name)}.* over a struct", "Name its fields.")
        fields = [field.name for field in struct.fields]
        column = resolved_column(found[0])
        return [Item(f, exp.Dot(this=column.copy(), expression=exp.to_identifier(f, quoted=True))) for f in fields]


def _without(star: exp.Star, fields: list[Item]) -> list[Item]:
    """The fields without those that EXCEPT names."""
    left_out = [_parts(item) for item in star.args.get("except_") or ()]
    if any(len(parts) > 1 for parts in left_out):
        raise UnsupportedSQL("* EXCEPT of a field's field")
    names = {parts[0].lower() for parts in left_out}
    return [item for item in fields if item.name.lower() not in names]


def _parts(item: exp.Expr) -> tuple[str, ...]:
    """The parts of a dotted name."""
    if not isinstance(item, exp.Column | exp.Identifier):
        raise UnsupportedSQL("* EXCEPT of a field")
    return tuple(part.name for part in item.parts) if isinstance(item, exp.Column) else (item.name,)


def _is_alias(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Alias | exp.Aliases)


def _name(tree: exp.Expr) -> str:
    """The name that Spark gives a column, where that is plain to see."""
    if isinstance(tree, exp.Alias):
        return str(tree.alias)
    named = tree.this if isinstance(tree, exp.Cast) else tree
    if isinstance(tree, exp.Literal) and tree.is_int:
        return str(int(tree.this))
    return str(named.name) if isinstance(named, exp.Column) else ""
