"""What lowering a query block needs to know of its surroundings, and what it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.frontend.outer import Outer
from dbt_incremental_dd.frontend.reason import readable
from dbt_incremental_dd.frontend.relations import is_local
from dbt_incremental_dd.frontend.scope import Ids, Named
from dbt_incremental_dd.frontend.template import block_template
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Get, Join, Map

_Tree = TypeVar("_Tree", bound=exp.Expr)


@dataclass(frozen=True)
class Input:
    """A base relation: the collection that stores it, and its visible columns.

    ``reading`` makes the node that reads it, given ids and names of columns; None: a Get.
    """

    collection: str
    schema: Schema
    reading: Callable[[tuple[tuple[Id, str], ...]], Node] | None = None


Analyze = Callable[[str, tuple[Schema, ...]], Schema]
"""The columns of a query text whose relations, of these columns, are written ``{0}``, ..."""


TypesOf = Callable[[Node], Schema | None]
"""A plan's columns; None where only Spark knows a type."""


def unknown(plan: Node) -> Schema | None:
    """A ``TypesOf`` that knows none."""
    return None


class NoAnalysis(Exception):
    """Raised by an ``Analyze`` that cannot be asked."""


@dataclass(frozen=True)
class Block:
    """A query's result: a plan, and its columns by name.

    ``carried``: the columns of the outside's values, where it depends on any.
    """

    plan: Node
    columns: tuple[Named, ...]
    carried: tuple[Id, ...] = ()

    @property
    def only(self) -> Node:
        """The plan with exactly these columns, in their order, what is carried first."""
        wanted = (*self.carried, *(column.id for column in self.columns))
        return (
            self.plan if wanted == self.plan.columns else Map(self.plan, tuple((id, Expr.column(id)) for id in wanted))
        )


@dataclass(frozen=True)
class Environment:
    """``ctes``: the visible common table expressions, each with the environment of its definition.

    ``types`` are those of columns that have been found already, ``types_of`` what the driver knows of a plan.
    ``outer``: what a correlated block can see of the outside. ``spells_out``: whether a query over nothing is lowered
    as any other; otherwise it stays whole, for Spark to compute once.
    """

    inputs: Mapping[str, Input]
    analyze: Analyze
    ids: Ids
    ctes: Mapping[str, tuple[exp.CTE, Environment]] = field(default_factory=dict)
    types: dict[Id, Type] = field(default_factory=dict)
    outer: Outer | None = None
    types_of: TypesOf = unknown
    spells_out: bool = False

    @property
    def closed(self) -> Environment:
        """For a block that sees nothing of the outside."""
        return replace(self, outer=None) if self.outer is not None else self

    def for_each_of(self, outer: Outer) -> Environment:
        """For a block that is computed for all values of the outside."""
        return replace(self, outer=outer)

    def with_ctes(self, with_: exp.With | None) -> Environment:
        """With the definitions of a WITH clause added, each seeing those before it."""
        environment = self
        for cte in with_.expressions if with_ is not None else ():
            environment = environment.with_cte(cte)
        return environment

    def with_cte(self, cte: exp.CTE) -> Environment:
        """With one definition added."""
        return replace(self, ctes={**self.ctes, cte.alias.lower(): (cte, self)})

    def get(self, key: str) -> tuple[Node, tuple[Named, ...]]:
        """A fresh reading of a base relation."""
        given = self.inputs[key]
        columns = tuple(Named(column.name, self.ids.new()) for column in given.schema)
        self.types.update(zip((c.id for c in columns), (c.type for c in given.schema), strict=True))
        outputs = tuple((c.id, c.name) for c in columns)
        return given.reading(outputs) if given.reading else Get(given.collection, outputs), columns

    def text(self, tree: exp.Expr) -> tuple[str, tuple[str, ...]]:
        """A query block as a query of its own, and the keys of the relations that it reads as ``{0}``, ..."""
        return block_template(closed(tree, self))

    def shape(self, tree: exp.Expr) -> Schema:
        """The columns that Spark sees in a block. Raises UnsupportedSQL for one that refers to what is outside."""
        text, keys = self.text(tree)
        try:
            return self.analyze(text, tuple(self.inputs[key].schema for key in keys))
        except (UnsupportedSQL, NoAnalysis):
            raise
        except Exception as error:  # whatever the analyser raises; the enclosing block is tried next
            raise UnsupportedSQL(f"Spark does not understand a part of it ({readable(error)})") from error


class LowerQuery(Protocol):
    """Lowers a block inside a query; raises UnsupportedSQL where it cannot."""

    def __call__(self, tree: exp.Expr, environment: Environment, *, names: bool = True) -> Block:
        """``names``: whether anybody asks for those of its columns. Only Spark knows the ones without an alias."""


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The operands of a top-level AND chain."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return [*conjuncts(tree.left), *conjuncts(tree.right)] if isinstance(tree, exp.And) else [tree]


def has_subquery(tree: exp.Expr) -> bool:
    """Whether a query stands anywhere in it."""
    return tree.find(exp.Query, exp.Exists) is not None


def lowered(tree: exp.Expr, environment: Environment, lower_query: LowerQuery, *, names: bool = True) -> Block:
    """A block by itself where it can be, else for each value of the outside."""
    if environment.outer is None:
        return lower_query(tree, environment, names=names)
    try:
        return lower_query(tree, environment.closed, names=names)
    except UnsupportedSQL:
        return lower_query(tree, environment, names=names)


def carrying(block: Block, environment: Environment) -> Block:
    """The block for each value of the outside, also where it depends on none."""
    if block.carried or environment.outer is None:
        return block
    domain, carried = environment.outer.fresh(environment.ids)
    return Block(Join((domain, block.plan), ()), block.columns, carried)


def closed(tree: exp.Expr, environment: Environment) -> exp.Expr:
    """A copy of the block with the CTEs that it sees in front, under names that hide nothing."""
    definitions: dict[int, tuple[str, exp.CTE]] = {}
    tree = _closed(tree.copy(), environment, definitions)
    if not definitions:
        return tree
    own = tree.args.get("with_")
    before = [cte for _, cte in definitions.values()]
    tree.set(
        "with_",
        exp.With(expressions=before + (own.expressions if own else []), recursive=bool(own and own.recursive)),
    )
    return tree


def _closed(tree: _Tree, environment: Environment, definitions: dict[int, tuple[str, exp.CTE]]) -> _Tree:
    for table in list(tree.find_all(exp.Table)):
        if len(table.parts) != 1 or is_local(table) or table.name.lower() not in environment.ctes:
            continue
        cte, outer = environment.ctes[table.name.lower()]
        if id(cte) not in definitions:
            body = _closed(cte.copy(), outer, definitions)
            name = f"dd_cte_{len(definitions) + 1}"
            body.args["alias"].set("this", exp.to_identifier(name))
            definitions[id(cte)] = (name, body)
        if not table.alias:
            alias = table.args.get("alias") or exp.TableAlias()
            alias.set("this", exp.to_identifier(table.name, quoted=True))
            table.set("alias", alias)
        table.set("this", exp.to_identifier(definitions[id(cte)][0]))
    return tree
