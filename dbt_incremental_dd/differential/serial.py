"""A differential plan as JSON, and back: operators that several others read stay shared."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

from dbt_incremental_dd.differential.groups import Recompute, RecomputeGroups, TopGroups, WindowGroups
from dbt_incremental_dd.differential.iterate import Iterate, Operand, Output, Reading, Variable
from dbt_incremental_dd.differential.join import DeltaJoin, Equality
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.differential.outer_join import LeftLinearJoin
from dbt_incremental_dd.differential.reduce import Accumulate, Accumulator, Extreme
from dbt_incremental_dd.differential.state import OutputState, State
from dbt_incremental_dd.differential.top import KeptTop
from dbt_incremental_dd.differential.window_append import WindowAppend
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Aggregate, Constant, Filter, FlatMap, Get, Map, Negate, Order, Union
from dbt_incremental_dd.logical.recursion import Bound

_OPERATORS = (
    *(Get, Constant, Map, Filter, FlatMap, Union, Negate, DeltaJoin, LeftLinearJoin, Accumulate),
    *(RecomputeGroups, TopGroups, KeptTop, WindowGroups, Recompute, Iterate, Operand, Reading, Bound),
)
_PARTS = (
    Accumulator,
    Aggregate,
    DifferentialPlan,
    Equality,
    Expr,
    Extreme,
    WindowAppend,
    Order,
    Output,
    OutputState,
    State,
    Variable,
)
_CLASSES: dict[str, type[Any]] = {kind.__name__: kind for kind in (*_OPERATORS, *_PARTS)}


def dumps(plan: DifferentialPlan) -> str:
    """The plan as JSON: a list of objects, each after those that it has; the plan is the last."""
    writer = _Writer()
    writer.value(plan)
    return json.dumps(writer.objects)


def loads(text: str) -> DifferentialPlan:
    """The plan that ``dumps`` made into the text. Raises ValueError for any other text."""
    made: list[Any] = []
    try:
        for name, values in json.loads(text):
            made.append(_CLASSES[name](*(_value(value, made) for value in values)))
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"this is no plan: {error}") from error
    if not made or not isinstance(made[-1], DifferentialPlan):
        raise ValueError("this is no plan")
    return made[-1]


class _Writer:
    """Writes each object once; references are numbers in an object of their own."""

    def __init__(self) -> None:
        self.objects: list[tuple[str, list[Any]]] = []
        self._numbers: dict[int, int] = {}

    def value(self, value: Any) -> Any:
        """What stands for the value where it is used."""
        if isinstance(value, tuple):
            return [self.value(item) for item in value]
        if not is_dataclass(value):
            return value
        if id(value) not in self._numbers:
            written = [self.value(getattr(value, field.name)) for field in fields(value)]
            self.objects.append((type(value).__name__, written))
            self._numbers[id(value)] = len(self.objects) - 1
        return {"object": self._numbers[id(value)]}


def _value(value: Any, made: list[Any]) -> Any:
    if isinstance(value, list):
        return tuple(_value(item, made) for item in value)
    return made[value["object"]] if isinstance(value, dict) else value
