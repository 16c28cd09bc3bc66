"""Envelope ``upsert``: a record replaces the row of its key, or deletes it.

Of several records for a key the latest counts, by ``order_by``; without it, by their place in the feed where it has an
order, else by the file's name, and within one file by the values, so that the outcome is always the same. What arrives
later wins unless ``order_by`` says it is older - also than a delete, whose position is kept as a tombstone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from pyspark.errors import PySparkException

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.foreign import reason
from dbt_incremental_dd.core.schema import DIFF_COLUMN, Schema
from dbt_incremental_dd.core.types import NESTED, VARIANT, Field
from dbt_incremental_dd.logical import equality
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.relation.engine import Branch, Measure, Running
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import with_keys
from dbt_incremental_dd.sources.envelopes.envelope import KEY, Change, Envelope, EnvelopeInput, Requirement
from dbt_incremental_dd.sources.envelopes.position import POSITION, EventPosition
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.envelopes.tombstones import NODE as TOMBSTONES
from dbt_incremental_dd.sources.envelopes.tombstones import Tombstones
from dbt_incremental_dd.sources.records import FILE, GONE, ORDER, is_many, localized, some
from dbt_incremental_dd.trace.spark_reader import quote_name
from dbt_incremental_dd.trace.write import ROWS_PER_FILE

ALIVE = "dd_alive"
"""BIGINT: 1 if the key has a row from this record on, 0 if the record takes it away."""
_OLD = "dd_old"
"""BIGINT: -1 if the key has a stored row, else NULL."""
_PLACE = "dd_place"
_IS_DELETE = Expr(f"{ALIVE} = 0L")


class Upsert(Envelope):
    """Each key's latest record against what is stored of the key."""

    name: ClassVar[str] = "upsert"
    takes_new_columns: ClassVar[bool] = True
    is_keyed_by_feed: ClassVar[bool] = True
    requires: ClassVar[Requirement | None] = KEY

    def sort_key(self, settings: EnvelopeSettings) -> tuple[str, ...]:
        return settings.key

    def takes_pieces(self, settings: EnvelopeSettings) -> bool:
        return True

    def apply(self, batch: EnvelopeInput) -> Change:
        """Raises ConfigError for a ``deleted_when`` that is no condition, SourceError for a NULL key."""
        return upserted(batch)


@dataclass(frozen=True)
class Candidates:
    """Records as changes of their keys' rows: visible columns, the position's, ``dd_alive``, perhaps ORDER and FILE.

    ``same_again``: a record at the stored position is that very change once more, and is ignored. ``may_delete``:
    whether one can take a row away.
    """

    rows: Relation
    position: EventPosition
    may_delete: bool
    same_again: bool = False


def upserted(batch: EnvelopeInput) -> Change:
    """The records as upserts, in the order that the settings say."""
    settings = batch.settings
    records = localized(batch.records)
    types = {column.name: column.type for column in records.schema}
    position = EventPosition(tuple(Field(name, types[name]) for name in settings.order_by))
    gone = [GONE] if GONE in types else []
    gone += [f"({settings.deleted_when}\n)"] if settings.deleted_when else []
    alive = f"CASE WHEN {' OR '.join(gone)} THEN 0L ELSE 1L END" if gone else "1L"
    order = [(name, Expr(quote_name(own))) for name, own in zip(position.columns, settings.order_by, strict=True)]
    try:
        rows = records.extend([*order, (ALIVE, Expr(alive))])
        rows.names  # noqa: B018 - analysed here, so that the setting can be named
    except PySparkException as error:
        raise ConfigError(
            f"source {batch.name}: deleted_when is {settings.deleted_when!r}, which Spark refuses: {reason(error)}",
            "Write a condition over the source's columns, as in WHERE.",
        ) from error
    return merged(batch, Candidates(rows, position, may_delete=bool(settings.deleted_when)))


def merged(batch: EnvelopeInput, candidates: Candidates) -> Change:
    """Each key's latest record against the stored row and the tombstone of its key: minus the old row, plus the new
    one, unless it is older than what is known, or equal to it. Raises SourceError for a NULL key.

    ``Change.finish`` stores the tombstones of what is deleted.
    """
    rows, is_arranged, is_first = candidates.rows, False, not _knows_any(batch)
    if is_first and is_many(rows):
        # What is computed of each key then needs no other exchange, and leaves each part sorted by it.
        rows, is_arranged = rows.in_ranges(batch.settings.key, -(-rows.estimate // ROWS_PER_FILE)), True
    latest = localized(_latest(batch, candidates, rows))
    _require_keys(batch, latest if latest.is_local else candidates.rows)
    tombstones = Tombstones(batch, candidates.position)
    if is_first:
        updates = latest.filter(Expr(f"{ALIVE} = 1L"))
    else:
        latest = latest.in_scratch()  # its keys are looked up before its rows are read
        keys = keys_of(latest, batch.settings.key)
        latest = tombstones.beside(latest, keys)
        beside = _beside_stored(batch, candidates.position, latest, keys)
        updates = _against_stored(batch, candidates, beside, tombstones)
    stored = candidates.position.packed(updates).columns([*batch.schema.names, POSITION])
    if not candidates.may_delete or not candidates.position.fields:
        return Change(stored, is_arranged=is_arranged)
    # In Spark it is quicker to look through all records than to find out which are the latest.
    looked = candidates.rows if is_first and not latest.is_local else None
    finish = partial(_bury, tombstones, latest.filter(_IS_DELETE), looked)
    return Change(stored, finish=finish, is_arranged=is_arranged)


def _bury(tombstones: Tombstones, deletes: Relation, looked: Relation | None) -> dict[str, int]:
    """Stores the positions of deletes; nothing where there is none in ``looked``."""
    return {} if looked is not None and not _any_delete(looked) else tombstones.add(deletes)


def _knows_any(batch: EnvelopeInput) -> bool:
    """Whether any key may have a stored row or a tombstone. A collection without files may still have tombstones."""
    return batch.log is not None and bool(batch.log.files or TOMBSTONES in batch.inner)


def _latest(batch: EnvelopeInput, candidates: Candidates, rows: Relation) -> Relation:
    """Each key's last record; sorted by key, where records are arranged."""
    position = candidates.position.columns
    ties = [name for name in (ORDER, FILE) if name in rows.names]
    ties += [c.name for c in batch.schema if not isinstance(c.type, NESTED) and c.type != VARIANT]
    order = [Order(Expr(quote_name(name)), descending=True, nulls_first=False) for name in (*position, *ties)]
    numbered = rows.running(batch.settings.key, order, [Running(_PLACE, Expr("1L"), through=True)])
    return numbered.filter(Expr(f"{_PLACE} = 1L")).columns([*batch.schema.names, *position, ALIVE])


def _require_keys(batch: EnvelopeInput, rows: Relation) -> None:
    if rows.is_local and not any(map(rows.has_null, batch.settings.key)):
        return
    columns = {f"dd_null_{place}": name for place, name in enumerate(batch.settings.key)}
    nulls = [
        Measure(id, "sum", Expr(f"CASE WHEN {quote_name(name)} IS NULL THEN 1L ELSE 0L END"), "BIGINT")
        for id, name in columns.items()
    ]
    found = some(rows.group_by((), nulls), 1)
    assert found is not None
    batch.refuse_null_keys({name: found[id][0].as_py() for id, name in columns.items()})


def _beside_stored(batch: EnvelopeInput, position: EventPosition, latest: Relation, keys: Keys) -> Relation:
    """The records with the stored row of their key (``_others``), if there is one (``dd_old``)."""
    assert batch.log is not None
    names = (*batch.schema.names, *position.columns)
    schema = Schema((*batch.schema, *position.stored, DIFF_COLUMN))
    found = position.unpacked(with_keys(batch.workspace, batch.log, schema, keys)).consolidate()
    found = found.extend([(_OLD, Expr("-1L"))])
    pairs = [(_OLD, _OLD), *zip(_others(names), names, strict=True)]
    return latest.lookup(found, batch.settings.key, pairs, of_groups=True)


def _against_stored(batch: EnvelopeInput, candidates: Candidates, beside: Relation, tombstones: Tombstones) -> Relation:
    """Minus the old row, plus the new one."""
    position, or_equal = candidates.position, not candidates.same_again
    names = (*batch.schema.names, *position.columns)
    others = _others(names)
    is_later = f"({_OLD} IS NULL OR {position.is_later(others[len(batch.schema) :], or_equal=or_equal)})"
    types = {column.name: column.type for column in beside.schema}
    pairs = zip(names, others, strict=True)
    same = " AND ".join(equality.same(quote_name(name), other, types[name]) for name, other in pairs)
    is_same = f"{_OLD} IS NOT NULL AND {ALIVE} = 1L AND {same}"
    changed = beside.filter(Expr(f"{is_later} AND {tombstones.is_later(or_equal=or_equal)} AND NOT ({is_same})"))
    old = Branch(list(zip(names, others, strict=True)), Expr(f"coalesce({_OLD}, 0L)"))
    new = Branch(list(zip(names, names, strict=True)), Expr(ALIVE))
    return changed.unpivot([old, new])


def _others(names: Sequence[str]) -> tuple[str, ...]:
    """What the stored row's columns are called beside a record."""
    return tuple(f"{_OLD}_{place}" for place in range(len(names)))


def _any_delete(rows: Relation) -> bool:
    found = some(rows.filter(_IS_DELETE), 1)
    return found is not None and found.num_rows > 0
