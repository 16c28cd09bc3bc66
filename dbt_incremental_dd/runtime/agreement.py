"""A model held to its contract: its columns, what is stored of it, and what a run adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import ContractError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import read
from dbt_incremental_dd.runtime.constraints import Constrained, enforce, require_meaning
from dbt_incremental_dd.runtime.contract import proven, require_columns
from dbt_incremental_dd.runtime.output import WrittenBatch, discard, schema_with_diff
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.runtime.strategy import StoredModel
from dbt_incremental_dd.trace.columns import visible_schema

if TYPE_CHECKING:
    from dbt_incremental_dd.runtime.run_context import RunContext


def hold_columns(run: RunContext, request: ModelRequest, current: StoredModel, schema: Schema) -> None:
    """Raises ColumnsError or ConfigError where the contract is not about such columns; asks Spark only where one of
    both has changed."""
    contract = request.config.contract
    if contract is None:
        return
    log, manifest = current.log, current.manifest
    if log is not None and manifest.contract == contract.text and visible_schema(manifest, log) == schema:
        return
    require_columns(run.session.spark, request.name, contract, schema)
    require_meaning(Constrained(run.session, run.storage, request.name, schema, None), contract.constraints)


def hold_stored(run: RunContext, request: ModelRequest, current: StoredModel, schema: Schema) -> str:
    """Holds what is stored to the contract where it is not yet. Returns the contract as the manifest then names it.

    Raises ColumnsError, ConfigError or ContractError where it does not keep to it.
    """
    contract = request.config.contract
    text = contract.text if contract else ""
    if current.manifest.contract == text:
        return text
    hold_columns(run, request, current, schema)
    if contract is not None:
        relation = Constrained(run.session, run.storage, request.name, schema, current.log)
        enforce(relation, contract.constraints, proven(current.manifest.contract), None)
    return text


def hold_batch(
    run: RunContext,
    request: ModelRequest,
    current: StoredModel,
    schema: Schema,
    change: Relation | None,
    batch: WrittenBatch,
    *,
    beside_stored: bool,
) -> None:
    """Raises ContractError, with nothing left of the batch, where the model would violate a constraint after it.

    ``beside_stored``: the batch comes on top of what is stored, and not in its place.
    """
    contract = request.config.contract
    if contract is None or not contract.constraints:
        return
    if change is not None and not change.is_local:  # computed once, for the files
        written = read(change.workspace, current.place.trace_uri, batch.files, schema_with_diff(schema), most=0)
        change = written if batch.files else None
    relation = Constrained(run.session, run.storage, request.name, schema, current.log if beside_stored else None)
    try:
        enforce(relation, contract.constraints, proven(current.manifest.contract), change)
    except ContractError:
        discard(run.storage, current.place, batch)
        raise
