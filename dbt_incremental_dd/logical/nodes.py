"""The relational algebra, named as in Materialize's MIR where it has the operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node, require


@dataclass(frozen=True)
class Get(Node):
    """A stored collection. ``outputs`` pairs an id with the collection's column name."""

    by_rows: ClassVar[bool] = True

    collection: str
    outputs: tuple[tuple[Id, str], ...]

    @property
    def columns(self) -> tuple[Id, ...]:
        return tuple(id for id, _ in self.outputs)


@dataclass(frozen=True)
class Constant(Node):
    """A relation that no input can change: ``sql`` is a whole query over nothing (VALUES, SELECT 1, range(10))."""

    by_rows: ClassVar[bool] = True

    sql: str
    ids: tuple[Id, ...]

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.ids


@dataclass(frozen=True)
class Map(Node):
    """Each row becomes the row of ``outputs``: projection, renaming and computed columns in one."""

    by_rows: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True

    input: Node
    outputs: tuple[tuple[Id, Expr], ...]

    def __post_init__(self) -> None:
        for _, expr in self.outputs:
            require(self, expr.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return tuple(id for id, _ in self.outputs)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(expr for _, expr in self.outputs)


@dataclass(frozen=True)
class Filter(Node):
    """The rows for which ``predicate`` is true."""

    by_rows: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True

    input: Node
    predicate: Expr

    def __post_init__(self) -> None:
        require(self, self.predicate.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.predicate,)


@dataclass(frozen=True)
class FlatMap(Node):
    """Each row joined with the rows that ``generator`` (explode, inline, ...) makes of it.

    ``outer`` keeps a row without any as one row of NULLs.
    """

    by_rows: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True

    input: Node
    generator: Expr
    outer: bool
    outputs: tuple[Id, ...]

    def __post_init__(self) -> None:
        require(self, self.generator.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns + self.outputs

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.generator,)


@dataclass(frozen=True)
class Join(Node):
    """Inner join of any number of inputs: the rows of their product for which every predicate of ``on`` is true."""

    is_linear: ClassVar[bool] = True

    operands: tuple[Node, ...]
    on: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for predicate in self.on:
            require(self, predicate.refs, self.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return tuple(id for operand in self.operands for id in operand.columns)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return self.on


@dataclass(frozen=True)
class OuterJoin(Node):
    """``left``: left rows without a match are kept with NULLs; ``full``: the right's likewise.

    A right join is the left join of swapped inputs.
    """

    is_linear: ClassVar[bool] = True

    kind: Literal["left", "full"]
    left: Node
    right: Node
    on: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for predicate in self.on:
            require(self, predicate.refs, self.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.left.columns + self.right.columns

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return self.on


@dataclass(frozen=True)
class SemiJoin(Node):
    """Left rows that have a match on the right; with ``anti``, those that have none."""

    is_linear: ClassVar[bool] = True

    anti: bool
    left: Node
    right: Node
    on: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for predicate in self.on:
            require(self, predicate.refs, self.left.columns + self.right.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.left.columns

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return self.on


@dataclass(frozen=True)
class Aggregate:
    """One aggregate call. ``sql`` is the whole call, the other fields its parts.

    ``function`` is in lower case (``sum``); ``args`` of ``count(*)`` are empty. ``plain`` says that ``function``,
    ``args``, ``distinct`` and ``filter`` are all there is to it (no IGNORE NULLS, no WITHIN GROUP).
    """

    id: Id
    sql: Expr
    function: str
    args: tuple[Expr, ...]
    distinct: bool = False
    filter: Expr | None = None
    plain: bool = True


@dataclass(frozen=True)
class Reduce(Node):
    """Groups of equal ``keys`` (NULLs are equal), and the aggregates over each.

    ``global_row``: without GROUP BY there is always one row, also over empty input.
    """

    input: Node
    keys: tuple[Id, ...]
    aggregates: tuple[Aggregate, ...]
    global_row: bool = False

    def __post_init__(self) -> None:
        require(self, set(self.keys), self.input.columns)
        for aggregate in self.aggregates:
            require(self, aggregate.sql.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.keys + tuple(aggregate.id for aggregate in self.aggregates)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(aggregate.sql for aggregate in self.aggregates)


@dataclass(frozen=True)
class Distinct(Node):
    """Each row once."""

    passes_filters: ClassVar[bool] = True

    input: Node

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Domain(Distinct):
    """The values that a subquery is computed for: a Distinct of a Map of ``source``.

    ``source`` stands in the plan once more, on the left of the join that reads the subquery's answer by these values.
    Only values of rows that get that far are needed, so a filter over that side may restrict ``source`` here, too.
    """

    @property
    def source(self) -> Node:
        """Where the values come from."""
        return self.input.inputs[0]


@dataclass(frozen=True)
class Order:
    """One ORDER BY item; ``nulls_first`` is explicit."""

    expr: Expr
    descending: bool
    nulls_first: bool

    @property
    def sql(self) -> str:
        """As text, for ORDER BY."""
        direction = "DESC" if self.descending else "ASC"
        return f"{self.expr.sql} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"

    @property
    def reversed(self) -> Order:
        """The other way round."""
        return Order(self.expr, not self.descending, not self.nulls_first)


@dataclass(frozen=True)
class TopK(Node):
    """In each group of equal ``keys``, the rows from ``offset`` on, at most ``limit``, in the order of ``order``.

    Ties are broken by all columns, so that the answer is one and the same every time.
    """

    input: Node
    keys: tuple[Id, ...]
    order: tuple[Order, ...]
    limit: int | None
    offset: int = 0

    def __post_init__(self) -> None:
        require(self, set(self.keys), self.input.columns)
        for item in self.order:
            require(self, item.expr.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Window(Node):
    """Window functions over partitions of equal ``keys``; ``functions`` are whole OVER expressions."""

    input: Node
    keys: tuple[Id, ...]
    functions: tuple[tuple[Id, Expr], ...]

    def __post_init__(self) -> None:
        require(self, set(self.keys), self.input.columns)
        for _, function in self.functions:
            require(self, function.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns + tuple(id for id, _ in self.functions)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(function for _, function in self.functions)


@dataclass(frozen=True)
class Union(Node):
    """The sum of multisets, column by position.

    ``widens``: the inputs' types may differ, and are widened as Spark's UNION ALL does.
    """

    by_rows: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True

    operands: tuple[Node, ...]
    ids: tuple[Id, ...]
    widens: bool = True

    def __post_init__(self) -> None:
        if any(len(operand.columns) != len(self.ids) for operand in self.operands):
            raise ValueError("Union needs inputs of as many columns as it has")

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.ids


@dataclass(frozen=True)
class Negate(Node):
    """The multiset with all multiplicities negated. Only below a Union that a Threshold closes."""

    by_rows: ClassVar[bool] = True
    passes_filters: ClassVar[bool] = True

    input: Node

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Threshold(Node):
    """Rows of positive multiplicity, with that multiplicity."""

    passes_filters: ClassVar[bool] = True

    input: Node

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Fallback(Node):
    """A query kept as text, recomputed whole and subtracted when any operand changes.

    ``sql`` names its operands ``{0}``, ``{1}``, ... and their columns by ``names`` (one tuple an operand). With
    ``temporal`` its answer depends on the time of the run (``dd_now()``), too.
    """

    sql: str
    operands: tuple[Node, ...]
    names: tuple[tuple[str, ...], ...]
    ids: tuple[Id, ...]
    reason: str
    temporal: bool = False

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.ids
