"""The relational algebra, named as in Materialize's MIR where it has the operator: a file for each."""

from dbt_incremental_dd.logical.nodes.constant import Constant
from dbt_incremental_dd.logical.nodes.distinct import Distinct, Domain
from dbt_incremental_dd.logical.nodes.fallback import Fallback
from dbt_incremental_dd.logical.nodes.filter import Filter
from dbt_incremental_dd.logical.nodes.flat_map import FlatMap
from dbt_incremental_dd.logical.nodes.get import Get
from dbt_incremental_dd.logical.nodes.join import Join
from dbt_incremental_dd.logical.nodes.map import Map
from dbt_incremental_dd.logical.nodes.negate import Negate
from dbt_incremental_dd.logical.nodes.outer_join import OuterJoin
from dbt_incremental_dd.logical.nodes.reduce import Aggregate, Reduce
from dbt_incremental_dd.logical.nodes.semi_join import SemiJoin
from dbt_incremental_dd.logical.nodes.threshold import Threshold
from dbt_incremental_dd.logical.nodes.top_k import Order, TopK
from dbt_incremental_dd.logical.nodes.union import Union
from dbt_incremental_dd.logical.nodes.window import Window

__all__ = [
    "Aggregate",
    "Constant",
    "Distinct",
    "Domain",
    "Fallback",
    "Filter",
    "FlatMap",
    "Get",
    "Join",
    "Map",
    "Negate",
    "Order",
    "OuterJoin",
    "Reduce",
    "SemiJoin",
    "Threshold",
    "TopK",
    "Union",
    "Window",
]
