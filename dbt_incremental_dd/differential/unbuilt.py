"""States that are left to be built later, by the first run that needs them.

What an operator stores is a function of its inputs' contents, so it can be made of them at any time at which they are
known. That is exact if the output agrees with it, which nobody has computed from it: no state may depend on a choice
that the query leaves open (ties, the order in which doubles are added), for the output's rows may be made of another.
"""

from __future__ import annotations

from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.differential.state import State, stores
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Node


def needed_states(node: Node) -> tuple[State, ...]:
    """What the operator cannot do without; a window's last rows it takes from its output when it wants them."""
    spare = getattr(node, "tail", None)
    return tuple(state for state in stores(node) if state is not spare)


def buildable_later(plan: DifferentialPlan) -> tuple[str, ...] | None:
    """The names of all states that a run over the plan needs. Returns None if some of them have to be built together
    with the output."""
    storing = [node for node in each_once(plan.root) if needed_states(node)]
    if not all(isinstance(node, Accumulate) and not node.is_rounded for node in storing):
        return None
    return tuple(state.name for node in storing for state in needed_states(node))
