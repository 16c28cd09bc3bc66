"""OpenLineage's facets of a dataset: its columns, what they are made of, and what else it is called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from openlineage.client.facet_v2 import column_lineage_dataset, schema_dataset, storage_dataset, symlinks_dataset

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.differential.column_lineage import InputColumn, column_lineage
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.observe.datasets import DatasetName

_VALUES = ("identity", "transformation", "aggregation")
"""How a column takes part in a value itself: DIRECT; otherwise INDIRECT."""


def schema_facet(schema: Schema) -> schema_dataset.SchemaDatasetFacet:
    """The columns with their Spark types."""
    fields = schema_dataset.SchemaDatasetFacetFields
    return schema_dataset.SchemaDatasetFacet([fields(one.name, str(one.type)) for one in schema])


def stored_facets(relation: DatasetName) -> dict[str, Any]:
    """Of a model's collection: its relation, and how it is stored."""
    identifier = symlinks_dataset.Identifier(relation.namespace, relation.name, "VIEW")
    return {
        "symlinks": symlinks_dataset.SymlinksDatasetFacet([identifier]),
        "storage": storage_dataset.StorageDatasetFacet("delta", fileFormat="parquet"),
    }


def column_facet(
    plan: DifferentialPlan, schema: Schema, names: Mapping[str, DatasetName]
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    """What the columns of ``schema`` are made of. ``names``: the inputs' datasets, by their collections."""
    found = column_lineage(plan)
    return column_lineage_dataset.ColumnLineageDatasetFacet(
        {
            name: column_lineage_dataset.Fields(_fields(made_of, names))
            for name, made_of in found.columns.items()
            if made_of and schema.find(name) is not None
        },
        dataset=_fields(found.rows, names),
    )


def _fields(
    columns: Iterable[InputColumn], names: Mapping[str, DatasetName]
) -> list[column_lineage_dataset.InputField]:
    """Each input column once, with all the ways in which it takes part."""
    ways: dict[tuple[str, str], list[column_lineage_dataset.Transformation]] = defaultdict(list)
    for one in sorted(columns):
        kind = "DIRECT" if one.how in _VALUES else "INDIRECT"
        way = column_lineage_dataset.Transformation(kind, subtype=one.how.upper())
        ways[one.collection, one.column].append(way)
    return [
        column_lineage_dataset.InputField(*names[collection], column, of)
        for (collection, column), of in ways.items()
        if collection in names
    ]
