"""A stored model's plan, compiled again from what its manifest says, with what it would read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.manifest import ModelManifest, kind_of
from dbt_incremental_dd.core.time import format_time
from dbt_incremental_dd.differential.explain import explain
from dbt_incremental_dd.differential.state import stores
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.arrangements import readers
from dbt_incremental_dd.runtime.compile import compile_model
from dbt_incremental_dd.runtime.costs import Costs
from dbt_incremental_dd.runtime.kept_history import stored_history
from dbt_incremental_dd.runtime.stored_sql import require_safe
from dbt_incremental_dd.trace.columns import require
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.position import position
from dbt_incremental_dd.trace.progress import size_text


def _amount(files: Sequence[DataFile]) -> str:
    size = size_text(sum(file.bytes for file in files))
    return f"{total_rows(files):,} updates, {size} in {len(files)} file{'' if len(files) == 1 else 's'}"


def _arrangements(storage: Storage, manifest: ModelManifest) -> Iterator[str]:
    """Those of its inputs that the model reads, and who else does."""
    models = readers(storage) if manifest.arrangements else {}
    for used in manifest.arrangements:
        place = storage.collection(used.collection).arrangement(used.column)
        stored = place.log()
        by = ", ".join(models.get(place.uri, ()))
        amount = _amount(stored.files if stored else ())
        yield f"Arrangement of {used.collection} by {used.column}: {amount}; read by {by}"


def _history(name: str, manifest: ModelManifest) -> Iterator[str]:
    """What is stored in place of the plan's rows."""
    history = stored_history(name, manifest)
    if history is not None:
        of = f" of {', '.join(history.key)}" if history.key else ""
        yield f"History{of}, by {history.time or 'the time of the run'}"


def _adopted(manifest: ModelManifest) -> Iterator[str]:
    """Where the model's first rows come from, if they were not computed."""
    if manifest.adopted is not None:
        message = manifest.adopted.message
        yield f"{message[:1].upper()}{message[1:]}; its history begins at {format_time(manifest.adopted.at)}"


def explain_model(session: LazySession, storage: Storage, name: str) -> str:
    """The plan as a tree; each input's updates, all and those that the next run reads as a delta; what is stored."""
    log, _ = require(storage, name)
    manifest = storage.collection(name).read_manifest(log.manifest)
    if not isinstance(manifest, ModelManifest):
        raise StateError(f"{name} is a {kind_of(manifest)}, not a model", "Name a model.")
    given = {key: require(storage, other) for key, other in manifest.inputs.items()}
    inputs = {key: Input(other.name, schema) for key, (other, schema) in given.items()}
    query = parsed(manifest.sql)
    require_safe(session, storage.collection(name), query, inputs, manifest.history)
    compiled = compile_model(session, name, query, inputs, history=manifest.history)
    read = position(log, manifest).inputs
    lines = [f"{name} at {format_time(log.frontiers.last)}", *_adopted(manifest), *_history(name, manifest)]
    lines.append(explain(compiled.plan))
    new = {key: between(other.files, read[other.name], other.frontiers.last) for key, (other, _) in given.items()}
    lines += [f"Input {key}: {_amount(other.files)}; next: {_amount(new[key])}" for key, (other, _) in given.items()]
    changed = sum(map(total_rows, new.values()))
    total = sum(total_rows(other.summands(other.frontiers.last)) for other, _ in given.values())
    changed_inputs = (given[key][0].name for key, files in new.items() if files)
    lines.append(Costs.of(manifest, changed_inputs).told(changed, total))
    for state in (state for node in each_once(compiled.plan.root) for state in stores(node)):
        inner = None if state.name in manifest.unbuilt else storage.collection(name).inner(state.name).log()
        amount = "built by the first run that needs it" if state.name in manifest.unbuilt else ""
        lines.append(f"State {state.name}: {amount or _amount(inner.files if inner else ())}")
    lines += _arrangements(storage, manifest)
    return "\n".join(lines)
