"""Upserts merged by Spark, into what is stored of the keys; few of them on the driver (``upsert_local``).

Each record is a candidate for its key's row, or for its delete, at a position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as F

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.foreign import reason
from dbt_incremental_dd.core.schema import DIFF, TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.types import NESTED, VARIANT
from dbt_incremental_dd.sources.envelopes.envelope import POSITION, Change, EnvelopeInput
from dbt_incremental_dd.sources.envelopes.upsert_local import key_values, merge_locally
from dbt_incremental_dd.sources.exchange import Records, write
from dbt_incremental_dd.sources.poll_result import FILE, GONE, ORDER
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES, file_type
from dbt_incremental_dd.trace.files import matching
from dbt_incremental_dd.trace.local import Local, find_local
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.read import consolidate, quote_name, quoted, updates

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DELETED = "dd_deleted"


@dataclass(frozen=True)
class Candidates:
    """Records as changes: visible columns, ``dd_position``, ``dd_deleted``. ``same_again``: a record at the stored

    position is that very change once more, and is ignored.
    """

    frame: DataFrame
    estimate: int
    same_again: bool = False


def change(batch: EnvelopeInput) -> Change:
    """Each key's latest record against what is stored of the key."""
    if not _knows_nothing(batch):
        batch = replace(batch, records=batch.records.localized())
        merged = merge_locally(batch, _tombstone_log(batch))
        if merged is not None:
            return Change(merged.updates, False, finish=lambda: _finish_locally(batch, merged.tombstones))
    frame = batch.records.frame
    order = [quoted(name) for name in batch.settings.order_by]
    position = F.struct(*order) if order else F.lit(None).cast("struct<dd_none:int>")
    frame = frame.withColumns({POSITION: position, _DELETED: _deleted(batch, frame)})
    return merge(batch, Candidates(frame, batch.records.estimate))


def _knows_nothing(batch: EnvelopeInput) -> bool:
    """Whether no key has a stored row or a tombstone. A collection without files may still have tombstones."""
    return batch.log is None or not (batch.log.files or "tombstones" in batch.inner)


def _deleted(batch: EnvelopeInput, frame: DataFrame) -> Column:
    condition = batch.settings.deleted_when
    gone = F.col(GONE) if GONE in frame.columns else F.lit(False)
    if not condition:
        return gone
    try:
        frame.where(F.expr(condition)).schema  # noqa: B018 - analysed here, so that the setting can be named
    except PySparkException as error:
        raise ConfigError(
            f"source {batch.name}: deleted_when is {condition!r}, which Spark refuses: {reason(error)}",
            "Write a condition over the source's columns, as in WHERE.",
        ) from error
    return gone | F.coalesce(F.expr(condition), F.lit(False))


def merge(batch: EnvelopeInput, candidates: Candidates) -> Change:
    """The stored rows' updates that the candidates imply. Raises SourceError for a NULL key."""
    first = _knows_nothing(batch)
    records = Records(batch.spark, candidates.frame, candidates.estimate)
    if first:
        records = records.arranged_by(batch.settings.key)
    kept = records.mapped(_latest(batch, records.frame)).localized()
    frame, local = kept.frame, kept.local
    _require_keys(batch, kept, candidates)
    if first:
        rows = kept.mapped(_stored_form(batch, frame.where(~F.col(_DELETED))))
        return _with_tombstones(batch, frame, None, rows, candidates, first=True)
    keys = frame.select(*map(quoted, batch.settings.key))
    values = key_values(local, batch.settings.key) if local is not None else {}
    known = _known(batch, keys, values, local is not None)
    tombstones = _tombstones(batch, keys, local is not None)
    rows = batch.changed(_against(batch, frame, known, tombstones, candidates), 2 * candidates.estimate)
    return _with_tombstones(batch, frame, tombstones, rows, candidates, first=False)


def _latest(batch: EnvelopeInput, frame: DataFrame) -> DataFrame:
    """Each key's last record; sorted by key, where records are arranged."""
    ties = [F.col(name).desc() for name in (ORDER, FILE) if name in frame.columns]
    ties += [quoted(c.name).desc() for c in batch.schema if not isinstance(c.type, NESTED) and c.type != VARIANT]
    window = Window.partitionBy(*map(quoted, batch.settings.key)).orderBy(F.col(POSITION).desc(), *ties)
    ranked = frame.withColumn("dd_rank", F.row_number().over(window)).where("dd_rank = 1")
    return ranked.select(*map(quoted, batch.schema.names), POSITION, _DELETED)


def _require_keys(batch: EnvelopeInput, latest: Records, candidates: Candidates) -> None:
    local, key = latest.local, batch.settings.key
    if local is not None:
        batch.refuse_null_keys({name: local[name].null_count for name in key})
    else:
        batch.refuse_null_keys({name: candidates.frame.where(quoted(name).isNull()).count() for name in key})


def _stored_form(batch: EnvelopeInput, frame: DataFrame) -> DataFrame:
    return frame.select(*map(quoted, batch.schema.names), POSITION, F.lit(1).cast("bigint").alias(DIFF))


def _known(batch: EnvelopeInput, keys: DataFrame, values: dict[str, list[object]], small: bool) -> DataFrame:
    """The stored rows of the keys."""
    assert batch.log is not None
    files = matching(batch.log.files, values)
    schema = Schema(tuple(c for c in batch.log.schema if c.name != TIME))
    frame = _found(batch, files, schema, values)
    if frame is None:
        frame = updates(batch.spark, batch.log.uri, files, schema)
    renamed = keys.select(*(quoted(name).alias(f"dd_key_{i}") for i, name in enumerate(batch.settings.key)))
    renamed = F.broadcast(renamed) if small else renamed
    on = _all([quoted(name) == F.col(f"dd_key_{i}") for i, name in enumerate(batch.settings.key)])
    return consolidate(frame.join(renamed, on, "left_semi"))


def _found(
    batch: EnvelopeInput, files: Sequence[DataFile], schema: Schema, values: dict[str, list[object]]
) -> DataFrame | None:
    """The rows with one of the values in each key column, found on the driver; None where that is not for it."""
    assert batch.log is not None
    if not values or not files or any(file_type(column.type) is None for column in schema):
        return None
    table = find_local(batch.place.storage, batch.log.uri, files, schema, values)
    return None if table is None else Local(batch.spark, table, schema).frame


def _against(
    batch: EnvelopeInput, frame: DataFrame, known: DataFrame, tombstones: DataFrame | None, candidates: Candidates
) -> DataFrame:
    """Minus the old row, plus the new one, for each key whose record is not older than what is known of it."""
    names = batch.schema.names
    old = known.select(
        *(quoted(name).alias(f"dd_key_{i}") for i, name in enumerate(batch.settings.key)),
        F.struct(*map(quoted, names)).alias("dd_old"),
        F.col(POSITION).alias("dd_old_position"),
    )
    joined = frame.join(old, _on_key(batch), "left")
    if tombstones is not None:
        joined = joined.join(_renamed_tombstones(batch, tombstones), _on_key(batch, "dd_tombstone_"), "left")
    else:
        joined = joined.withColumn("dd_tombstone", F.lit(None).cast(frame.schema[POSITION].dataType))
    joined = joined.where(_is_newer(candidates.same_again))
    new_row = F.struct(*map(quoted, names))
    unchanged = ~F.col(_DELETED) & F.col("dd_old").isNotNull() & new_row.eqNullSafe(F.col("dd_old"))
    unchanged = unchanged & F.col(POSITION).eqNullSafe(F.col("dd_old_position"))
    pair = F.array(
        F.struct(
            F.col("dd_old").alias("row"), F.col("dd_old_position").alias("p"), F.lit(-1).cast("bigint").alias("d")
        ),
        F.struct(new_row.alias("row"), F.col(POSITION).alias("p"), F.lit(1).cast("bigint").alias("d")),
    )
    rows = joined.where(~unchanged).select(
        F.explode(pair).alias("dd_pair"), F.col(_DELETED), F.col("dd_old").isNotNull().alias("dd_had")
    )
    rows = rows.where((F.col("dd_pair.d") == -1) & F.col("dd_had") | (F.col("dd_pair.d") == 1) & ~F.col(_DELETED))
    fields = (F.col(f"dd_pair.row.{quote_name(name)}").alias(name) for name in names)
    return rows.select(*fields, F.col("dd_pair.p").alias(POSITION), F.col("dd_pair.d").alias(DIFF))


def _is_newer(same_again: bool) -> Column:
    """Whether a record is to be taken, by its position against the stored row's or the tombstone's."""
    known = F.coalesce("dd_old_position", "dd_tombstone")
    newer = F.col(POSITION) > known if same_again else F.col(POSITION) >= known
    return known.isNull() | F.col(POSITION).isNull() | newer


def _on_key(batch: EnvelopeInput, prefix: str = "dd_key_") -> Column:
    return _all([quoted(name) == F.col(f"{prefix}{i}") for i, name in enumerate(batch.settings.key)])


def _all(conditions: list[Column]) -> Column:
    result = conditions[0]
    for condition in conditions[1:]:
        result = result & condition
    return result


def _renamed_tombstones(batch: EnvelopeInput, tombstones: DataFrame) -> DataFrame:
    return tombstones.select(
        *(F.col(f"dd_k{i}").alias(f"dd_tombstone_{i}") for i in range(len(batch.settings.key))),
        F.col(POSITION).alias("dd_tombstone"),
    )


def _tombstones(batch: EnvelopeInput, keys: DataFrame, small: bool) -> DataFrame | None:
    """Positions of deletes of the keys."""
    log = _tombstone_log(batch)
    if log is None or not log.files:
        return None
    schema = Schema(tuple(c for c in log.schema if c.name != TIME))
    frame = updates(batch.spark, log.uri, log.files, schema)
    renamed = keys.select(*(quoted(name).alias(f"dd_key_{i}") for i, name in enumerate(batch.settings.key)))
    on = _all([F.col(f"dd_k{i}") == F.col(f"dd_key_{i}") for i in range(len(batch.settings.key))])
    return consolidate(frame.join(F.broadcast(renamed) if small else renamed, on, "left_semi"))


def _tombstone_log(batch: EnvelopeInput) -> Log | None:
    """The tombstones as of the collection's last commit."""
    place = batch.place.inner("tombstones")
    version = batch.inner.get("tombstones")
    return None if version is None else place.log_at(version)


def _with_tombstones(
    batch: EnvelopeInput,
    frame: DataFrame,
    tombstones: DataFrame | None,
    rows: Records,
    candidates: Candidates,
    first: bool,
) -> Change:
    """The change, and before its commit the tombstones of what it deletes."""
    ordered = bool(batch.settings.order_by) or candidates.same_again
    may_delete = bool(batch.settings.deleted_when) or candidates.same_again

    def finish() -> dict[str, int]:
        if not ordered or not may_delete or (first and candidates.frame.where(_DELETED).isEmpty()):
            return {}
        return _add_tombstones(batch, frame, tombstones)

    return Change(rows, first, finish=finish)


def _add_tombstones(batch: EnvelopeInput, frame: DataFrame, tombstones: DataFrame | None) -> dict[str, int]:
    """Appends the tombstones' delta: the deletes' positions, minus the former ones of the same keys."""
    keys = [quoted(name).alias(f"dd_k{i}") for i, name in enumerate(batch.settings.key)]
    dead = frame.where(F.col(_DELETED)).select(*keys, POSITION, F.lit(1).cast("bigint").alias(DIFF))
    if tombstones is not None:
        old = tombstones.withColumn(DIFF, F.lit(-1).cast("bigint"))
        latest = F.max(POSITION).alias(POSITION)
        names = [f"dd_k{i}" for i in range(len(batch.settings.key))]
        best = dead.drop(DIFF).unionByName(tombstones.drop(DIFF)).groupBy(*names).agg(latest)
        dead = consolidate(best.withColumn(DIFF, F.lit(1).cast("bigint")).unionByName(old))
    return _store_tombstones(batch, batch.changed(dead, 2 * batch.records.estimate).localized())


def _finish_locally(batch: EnvelopeInput, tombstones: Records) -> dict[str, int]:
    return _store_tombstones(batch, tombstones) if batch.settings.order_by and batch.settings.deleted_when else {}


def _store_tombstones(batch: EnvelopeInput, rows: Records) -> dict[str, int]:
    """Appends the updates to the tombstones as of the collection's last commit; their new version."""
    log = _tombstone_log(batch)
    if rows.local is not None and rows.local.num_rows == 0:
        return {"tombstones": log.version} if log else {}
    place = batch.place.inner("tombstones")
    stored = Schema((*rows.schema.columns, TIME_COLUMN))
    bounded = [column.name for column in stored if column.name.startswith("dd_k") and column.type in BOUNDED_TYPES]
    files = write(batch.place.storage, place.trace_uri, rows, stored, batch.t, bounded)
    return {"tombstones": place.create(stored).holding((*(log.files if log else ()), *files)).version}
