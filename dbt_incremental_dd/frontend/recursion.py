"""WITH RECURSIVE: which of its names need each other, what columns they have, and their Fixpoint.

Wherever a recursive name is read a stand-in is: a base relation of the name's columns, whose reading is a Recur inside
of the recursion and a Bound outside. So the rest of the frontend knows nothing of recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.frontend.block import Environment, Input, LowerQuery
from dbt_incremental_dd.frontend.relations import is_local
from dbt_incremental_dd.logical.dialect import level_of
from dbt_incremental_dd.logical.fixpoint import fixpoint, is_linear
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Map, Union
from dbt_incremental_dd.logical.recursion import Bound, Recur

STAND_IN = "dd_recursion"
"""The schema of the stand-ins; no relation of the user's can be meant by it."""
_WIDENINGS = 4
_numbers = count(1)

Outputs = tuple[tuple[Id, str], ...]
Schemas = Mapping[str, Schema]


def with_recursive(environment: Environment, tree: exp.Expr, lower_query: LowerQuery) -> Environment:
    """The environment with the definitions of a query's WITH RECURSIVE added; each name may be used by all of them."""
    around = environment
    for group in groups(tree.args["with_"]):
        if not recurs(group):
            environment = environment.with_cte(group[0])
            continue
        if _may_end_early(tree, {cte.alias.lower() for cte in group}) and _is_sparks(tree, around):
            raise UnsupportedSQL("LIMIT without ORDER BY over a recursion: Spark ends the recursion early")
        environment = _with_group(environment, group, lower_query)
    return environment


def is_recursive(tree: exp.Expr) -> bool:
    """Whether any WITH in the query is recursive in truth."""
    return any(with_.recursive and any(map(recurs, groups(with_))) for with_ in tree.find_all(exp.With))


def recurs(group: Sequence[exp.CTE]) -> bool:
    """Whether the definitions of a group need themselves."""
    return len(group) > 1 or bool(_needs(group[0], {group[0].alias.lower()}))


def _may_end_early(tree: exp.Expr, names: set[str]) -> bool:
    """Whether a LIMIT asks for any few rows of what reads the names."""
    rest = tree.copy()
    rest.set("with_", None)
    limited = (q for q in rest.find_all(exp.Query) if q.args.get("limit") is not None and not q.args.get("order"))
    return any(_readings(query.copy(), names) for query in limited)


def _is_sparks(tree: exp.Expr, environment: Environment) -> bool:
    """Whether Spark answers the query itself."""
    try:
        environment.shape(tree)
    except UnsupportedSQL:
        return False
    return True


def groups(with_: exp.With) -> list[list[exp.CTE]]:
    """The definitions by need: those that need each other together, after those that they need."""
    by_name = {cte.alias.lower(): cte for cte in with_.expressions}
    needs = {name: _needs(cte, by_name) for name, cte in by_name.items()}
    reached = {name: _reached(name, needs) for name in by_name}
    done: list[list[exp.CTE]] = []
    grouped: set[str] = set()

    def visit(name: str) -> None:
        if name in grouped:
            return
        together = [other for other in by_name if other == name or (other in reached[name] and name in reached[other])]
        grouped.update(together)
        for other in together:
            for needed in sorted(needs[other], key=list(by_name).index):
                visit(needed)
        done.append([by_name[other] for other in together])

    for name in by_name:
        visit(name)
    return done


def _needs(cte: exp.CTE, names: Iterable[str]) -> set[str]:
    """The names among these that a definition reads."""
    return {table.name.lower() for table in _readings(cte.this.copy(), set(names))}


def _readings(tree: exp.Expr, names: set[str]) -> list[exp.Table]:
    return [
        table
        for table in tree.find_all(exp.Table)
        if len(table.parts) == 1 and table.name.lower() in names and not is_local(table)
    ]


def _reached(name: str, needs: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = list(needs[name])
    while ahead:
        other = ahead.pop()
        if other not in found:
            found.add(other)
            ahead += needs[other]
    return found


def _with_group(environment: Environment, group: Sequence[exp.CTE], lower_query: LowerQuery) -> Environment:
    schemas = schemas_of(environment, group)
    inside = standing_in(environment, schemas, _recur(schemas))
    plans = []
    for cte in group:
        name = cte.alias.lower()
        block = lower_query(cte.this.copy(), inside.closed)
        if len(block.columns) != len(schemas[name]):
            raise UnsupportedSQL(f"the columns of the recursive {name} cannot be counted")
        plans.append((name, block.only, schemas[name]))
    _require_sparks_meaning(environment, group, plans)
    levels = [level for cte in group if (level := level_of(cte)) is not None]
    node = fixpoint(plans, min(levels, default=None))
    return standing_in(environment, schemas, lambda name: lambda outputs: Bound(node, name, outputs))


def _recur(schemas: Schemas) -> Callable[[str], Callable[[Outputs], Node]]:
    return lambda name: lambda outputs: Recur(name, outputs, schemas[name])


def standing_in(
    environment: Environment, schemas: Schemas, reading: Callable[[str], Callable[[Outputs], Node]] | None = None
) -> Environment:
    """The environment in which these names are relations of these columns."""
    inputs, ctes = dict(environment.inputs), dict(environment.ctes)
    made = {name: f"{name}_{next(_numbers)}" for name in schemas}
    for name, table in made.items():
        key = f"{STAND_IN}.{table}".lower()
        inputs[key] = Input(key, schemas[name], reading(name) if reading else None)
    environment = replace(environment, inputs=inputs)
    for name, table in made.items():
        query = exp.select("*").from_(exp.table_(table, db=STAND_IN, quoted=True))
        cte = exp.CTE(this=query, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        ctes[name] = (cte, environment)
    return replace(environment, ctes=ctes)


def schemas_of(environment: Environment, group: Sequence[exp.CTE]) -> dict[str, Schema]:
    """The columns of names that need each other: first those of what does not recur, then widened until they stay."""
    known: dict[str, Schema] = {}
    while len(known) < len(group):
        unknown = {cte.alias.lower() for cte in group} - set(known)
        found = {}
        for cte in group:
            anchor = _without(cte.this, unknown) if cte.alias.lower() in unknown else None
            if anchor is not None:
                found[cte.alias.lower()] = _named(standing_in(environment, known).shape(anchor), cte)
        if not found:
            raise UnsupportedSQL(
                f"the columns of {', '.join(sorted(unknown))} cannot be told: all of it is recursive",
                "Begin it with a part that does not refer to itself, in a UNION.",
            )
        known |= found
    for _ in range(_WIDENINGS):
        inside = standing_in(environment, known)
        wider = {cte.alias.lower(): _named(inside.shape(cte.this), cte) for cte in group}
        if _types(wider) == _types(known):
            return {name: _renamed(known[name], wider[name].names) for name in known}
        known = wider
    raise UnsupportedSQL(
        f"the columns of the recursive {', '.join(known)} get other types with each iteration",
        "CAST them to the type that they shall have.",
    )


def _types(schemas: Schemas) -> dict[str, list[Type]]:
    return {name: [column.type for column in schema] for name, schema in schemas.items()}


def _named(schema: Schema, cte: exp.CTE) -> Schema:
    names = [column.name for column in cte.args["alias"].columns]
    if not names:
        return schema
    if len(names) != len(schema):
        raise UnsupportedSQL(f"{cte.alias} has {len(schema)} columns, and names for {len(names)}")
    return _renamed(schema, names)


def _renamed(schema: Schema, names: Iterable[str]) -> Schema:
    return Schema(tuple(Column(name, column.type) for name, column in zip(names, schema, strict=True)))


def _without(tree: exp.Expr, names: set[str]) -> exp.Expr | None:
    """The query without the operands of set operations that read any of the names; None where nothing is left."""
    holder = exp.Paren(this=tree.copy())
    while True:
        table = next(iter(_readings(holder, names)), None)
        if table is None:
            whole: exp.Expr | None = holder.this
            return whole
        below: exp.Expr = table
        while below.parent is not None and not (
            isinstance(below.parent, exp.SetOperation) and below.arg_key != "with_"
        ):
            below = below.parent
        union = below.parent
        if union is None:
            return None
        kept = union.right if below is union.left else union.left
        with_ = union.args.get("with_")
        if with_ is not None:
            kept = exp.select("*").from_(exp.Subquery(this=kept.copy(), alias=exp.to_identifier("dd_kept")))
            kept.set("with_", with_.copy())
        union.replace(kept.copy())


def _require_sparks_meaning(
    environment: Environment, group: Sequence[exp.CTE], plans: Sequence[tuple[str, Node, Schema]]
) -> None:
    """Spark has UNION ALL go on with the rows of the last step alone. Where that is not the same, and Spark answers
    the query, its answer is the one that counts."""
    cte, (name, plan, _) = group[0], plans[0]
    if len(group) > 1 or is_linear(plan) or not isinstance(_below_maps(plan), Union):
        return
    query = exp.select("*").from_(exp.table_(cte.alias, quoted=True))
    query.set("with_", exp.With(expressions=[cte.copy()], recursive=True))
    if _is_sparks(query, environment):
        raise UnsupportedSQL(
            f"the recursive {name} is a UNION ALL whose step is not linear: Spark has it see the last step's rows only"
        )


def _below_maps(plan: Node) -> Node:
    while isinstance(plan, Map):
        plan = plan.input
    return plan
