"""Why a model's run fails: what is stored is damaged, of itself or of an input, or its SQL does not fit the data."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_incremental_dd.core.errors import DifferentialError, QueryError, SourceError, StateError
from dbt_incremental_dd.core.foreign import is_foreign, reason
from dbt_incremental_dd.runtime.strategy import InputSnapshot, StoredModel
from dbt_incremental_dd.trace.damage import damage, may_be_damage
from dbt_incremental_dd.trace.layout import Storage


def require_whole(storage: Storage, current: StoredModel, *, with_states: bool = False, contents: bool = False) -> None:
    """Raises StateError where a file of the model is not there as it was written; ``contents``: files are read."""
    states = current.manifest.inner if with_states else ()
    for log in (current.log, *(current.place.inner(name).log() for name in states)):
        damaged = damage(storage, log, contents=contents) if log is not None else None
        if damaged is not None:
            raise StateError(f"what is stored of it is damaged: {damaged}", "It is built anew.")


def explained(
    storage: Storage, model: str, current: StoredModel, given: Iterable[InputSnapshot], error: Exception
) -> Exception:
    """What the user can do about an error. A StateError is about what is stored of the model itself."""
    if isinstance(error, DifferentialError) or not is_foreign(error):
        return error
    contents = may_be_damage(error)
    for item in given:
        damaged = damage(storage, item.log, contents=contents)
        if damaged is not None:
            return SourceError(
                f"{model} reads {item.name}, which is damaged: {damaged}",
                f"Restore the file, or build {item.name} anew: `dbt run --full-refresh --select` and its name; "
                f"of a source, remove its folder under {storage.root}/collections.",
            )
    try:
        require_whole(storage, current, with_states=True, contents=contents)
    except StateError as damaged_state:
        return damaged_state
    return QueryError(
        f"{model}: its query fails: {reason(error)}",
        "Correct the SQL, or the data that it names. Nothing of this run is visible.",
    )
