"""What a model would be, without reading rows or storing anything: for ``--empty`` and ``--sample``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.relations import RelationName
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compile import compile_model, require_deltas
from dbt_incremental_dd.runtime.constraints import Constrained, require_meaning
from dbt_incremental_dd.runtime.contract import require_columns
from dbt_incremental_dd.runtime.kept_history import KeptHistory
from dbt_incremental_dd.runtime.relation_sql import no_rows_sql
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.runtime.source_relation import source_columns
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.columns import columns_of
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_EMPTIED = re.compile(r"\(select \* from (.+?) where false limit 0\)")
"""What dbt writes in place of a relation's name with ``--empty``."""


@dataclass(frozen=True)
class Preview:
    """``sql`` is a query of no rows with the model's columns; ``fallbacks`` are reasons why parts of it would be
    recomputed whole, none if all of it would be kept up to date by deltas."""

    sql: str
    fallbacks: tuple[str, ...]

    @property
    def message(self) -> str:
        """What a user should know."""
        return "; ".join(["nothing is stored", *(f"recomputed: {reason}" for reason in self.fallbacks)])


def preview(spark: SparkSession, storage: Storage, request: ModelRequest) -> Preview:
    """Compiles the model as its run would. Raises what an invalid query raises, and a fallback that is refused."""
    request = replace(request, sql=_EMPTIED.sub(r"\1", request.sql))
    inputs = {r.key: Input(r.key, _schema(spark, storage, request, r)) for r in request.relations}
    history = request.config.history
    settings = request.config.history_settings
    compiled = compile_model(LazySession.of(spark), request.name, request.query, inputs, history=settings)
    require_deltas(compiled.plan, request)
    schema = compiled.schema
    if history is not None:
        schema = KeptHistory.of(request.name, history, schema).schema
    contract = request.config.contract
    if contract is not None:
        require_columns(spark, request.name, contract, schema)
        require_meaning(Constrained(LazySession.of(spark), storage, request.name, schema, None), contract.constraints)
    return Preview(no_rows_sql(schema), compiled.plan.fallbacks)


def stored_columns(storage: Storage, name: str) -> Schema | None:
    """A stored collection's columns; None where there is no such collection."""
    place = storage.collection(name)
    log = place.log()
    return None if log is None or log.manifest is None else columns_of(place, log)


def _schema(spark: SparkSession, storage: Storage, request: ModelRequest, relation: RelationName) -> Schema:
    """What was taken in, else what is declared, else what the catalog says."""
    how = request.inputs.get(relation.key)
    if isinstance(how, SourceSpec):
        found = source_columns(LazySession.of(spark), storage, how)
    else:
        found = stored_columns(storage, relation.key)
    return schema_of(spark.table(relation.sql).schema) if found is None else found
