"""What fails within an intake, as errors that the user can read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dbt_incremental_dd.core.errors import DifferentialError, SourceError, StateError
from dbt_incremental_dd.core.foreign import file_of, is_foreign, reason
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.damage import damage, logs_of, may_be_damage
from dbt_incremental_dd.trace.layout import CollectionStore, Storage

T = TypeVar("T")


def told(storage: Storage, place: CollectionStore, spec: SourceSpec, take: Callable[[], T]) -> T:
    """What ``take`` returns; a library's failure becomes an error that the user can read."""
    try:
        return take()
    except Exception as error:
        if not is_foreign(error):
            raise
        raise _failed(storage, place, spec, error) from error


def _failed(storage: Storage, place: CollectionStore, spec: SourceSpec, error: Exception) -> DifferentialError:
    """What the user can do about a failure of Spark's, Arrow's or the disk's."""
    contents = may_be_damage(error)
    damaged = next((found for log in logs_of(place) if (found := damage(storage, log, contents=contents))), None)
    if damaged is not None:
        return StateError(
            f"what is stored of source {spec.name} is damaged: {damaged}",
            f"Restore the file, or remove {place.uri} to take the source in anew.",
        )
    file = file_of(error)
    where = f"{file} of it cannot be read" if file else "it cannot be taken in"
    return SourceError(
        f"source {spec.name}: {where}: {reason(error)}",
        "Correct or remove what it names. Nothing of this intake is stored.",
    )
