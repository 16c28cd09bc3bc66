"""Tombstones: the positions at which keys' rows were deleted, so that what comes late does not bring them back."""

from __future__ import annotations

from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.engine import Branch
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import with_keys, write
from dbt_incremental_dd.sources.envelopes.envelope import EnvelopeInput
from dbt_incremental_dd.sources.envelopes.position import POSITION, EventPosition
from dbt_incremental_dd.sources.records import localized
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES
from dbt_incremental_dd.trace.log import Log

NODE = "tombstones"
"""The trace's name."""
_DEAD = "dd_dead"
"""BIGINT: -1 if the key has a tombstone, else NULL."""


class Tombstones:
    """Those of a collection as of its last commit: the key's columns (``dd_k<i>``), and a position.

    Holds none of the batch's records.
    """

    def __init__(self, batch: EnvelopeInput, position: EventPosition) -> None:
        self._workspace, self._t = batch.workspace, batch.t
        self._key, self._schema = batch.settings.key, batch.schema.select(batch.settings.key)
        self._position = position
        self._place, self._inner = batch.place.inner(NODE), batch.inner
        self._others = tuple(f"{_DEAD}_{place}" for place in range(len(position.fields)))
        self._log = self._stored_log()
        self._are_beside = False

    def _stored_log(self) -> Log | None:
        version = self._inner.get(NODE)
        return None if version is None else self._place.log_at(version)

    @property
    def _are_any(self) -> bool:
        return self._log is not None and bool(self._log.files)

    @property
    def _keys(self) -> dict[str, str]:
        """The stored names of the key's columns."""
        return {name: f"dd_k{place}" for place, name in enumerate(self._key)}

    def beside(self, latest: Relation, keys: Keys) -> Relation:
        """The records with the tombstones of their keys, if there are any."""
        if self._log is None or not self._log.files:
            return latest
        self._are_beside = True
        position = self._position.columns
        columns = (Column(self._keys[c.name], c.type) for c in self._schema)
        schema = Schema((*columns, *self._position.stored, DIFF_COLUMN))
        found = with_keys(self._workspace, self._log, schema, keys.renamed(self._keys))
        found = self._position.unpacked(found).consolidate()
        found = found.select([*self._keys.items(), *zip(position, position, strict=True)])
        found = found.extend([(_DEAD, Expr("-1L"))])
        pairs = [(_DEAD, _DEAD), *zip(self._others, position, strict=True)]
        return latest.lookup(found, self._key, pairs, of_groups=True)

    def is_later(self, *, or_equal: bool) -> str:
        """SQL over ``beside``: whether a record is behind its key's tombstone, or there is none."""
        if not self._are_any:
            return "TRUE"
        return f"({_DEAD} IS NULL OR {self._position.is_later(self._others, or_equal=or_equal)})"

    def add(self, deletes: Relation) -> dict[str, int]:
        """Appends the positions of deletes, where they are later minus the former ones of their keys; those that are
        not ``beside`` them have none. Returns the version."""
        position = self._position.columns
        new = [*((name, own) for own, name in self._keys.items()), *zip(position, position, strict=True)]
        if self._are_beside:
            old = [*new[: len(self._keys)], *zip(position, self._others, strict=True)]
            later = deletes.filter(Expr(self.is_later(or_equal=False)))
            rows = later.unpivot([Branch(new, Expr("1L")), Branch(old, Expr(f"coalesce({_DEAD}, 0L)"))])
        else:
            rows = deletes.select(new)
        rows = self._position.packed(rows).columns([*self._keys.values(), POSITION])
        return self._added(localized(rows))

    def _added(self, rows: Relation) -> dict[str, int]:
        if rows.is_empty:
            return {}
        stored = Schema((*rows.schema.columns, TIME_COLUMN))
        bounded = [c.name for c in stored if c.name in self._keys.values() and c.type in BOUNDED_TYPES]
        files = write(rows, self._place.trace_uri, stored, self._t, bounded=bounded)
        former = self._stored_log()
        log = self._place.create_anew(stored) if former is None else self._place.create(stored)
        return {NODE: log.holding((*(former.files if former else ()), *files)).version}
