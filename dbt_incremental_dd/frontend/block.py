"""What lowering a query block needs to know of its surroundings, and what it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.frontend.scope import Ids, Named
from dbt_incremental_dd.logical.nodes import Get, Node


@dataclass(frozen=True)
class Input:
    """A base relation: the collection that stores it, and its visible columns."""

    collection: str
    schema: Schema


Analyze = Callable[[str, tuple[str, ...]], Schema]
"""The columns of a query text whose relations are written ``{0}``, ... (their keys in order)."""


@dataclass(frozen=True)
class Block:
    """A query's result: a plan, and its columns by name."""

    plan: Node
    columns: tuple[Named, ...]


@dataclass(frozen=True)
class Environment:
    """``ctes``: the visible common table expressions, each with the environment of its definition."""

    inputs: Mapping[str, Input]
    analyze: Analyze
    ids: Ids
    ctes: Mapping[str, tuple[exp.CTE, Environment]] = field(default_factory=dict)

    def with_ctes(self, with_: exp.With | None) -> Environment:
        """With the definitions of a WITH clause added, each seeing those before it."""
        environment = self
        for cte in with_.expressions if with_ is not None else ():
            ctes = {**environment.ctes, cte.alias.lower(): (cte, environment)}
            environment = replace(environment, ctes=ctes)
        return environment

    def get(self, key: str) -> tuple[Get, tuple[Named, ...]]:
        """A fresh reading of a base relation."""
        given = self.inputs[key]
        columns = tuple(Named(column.name, self.ids.new()) for column in given.schema)
        return Get(given.collection, tuple((c.id, c.name) for c in columns)), columns
