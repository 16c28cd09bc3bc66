"""The rows of a plan, rendered once from nothing, with states that are thrown away."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.relation.unopened import Unopened
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.render.context import Context, InputInterval
from dbt_incremental_dd.render.inner import InnerTraces
from dbt_incremental_dd.render.renderer import Renderer
from dbt_incremental_dd.trace.layout import Storage


def rendered_once(
    session: Unopened, storage: Storage, scratch: Storage, root: Node, inputs: Mapping[str, InputInterval], at: Time
) -> Table | None:
    """Each row as often as it counts, in the columns of the root; None of nothing. ``scratch``: for what operators
    store. Raises NotExact for what only Spark computes."""
    states = InnerTraces(Workspace(session, scratch), scratch.collection("q"), {}, fresh=True, report=_ignore)
    workspace = Workspace(session, storage)
    context = Context(workspace, BEGINNING, at, at=at, inputs=inputs, output=None, inner=states, report=_ignore)
    rows = Renderer(context, root).run()
    if rows is None:
        return None
    found = rows.multiset().expand().select([(id, id) for id in root.columns]).table
    if found is None:
        raise NotExact("rows that are in Spark")
    return Table(found.arrow.select(list(root.columns)), found.schema.select(root.columns))


def _ignore(line: str) -> None:
    """What nobody reads."""
