"""The records of one intake as files of updates: all at once, or piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.plain_text import Unclear
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME_COLUMN, Schema
from dbt_incremental_dd.duck.connections import error as duckdb_error
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import write
from dbt_incremental_dd.sources.envelopes.envelope import EnvelopeInput
from dbt_incremental_dd.sources.records import localized
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES
from dbt_incremental_dd.trace.counts import count, count_stored
from dbt_incremental_dd.trace.write import remove_files

_AT_ONCE, _AHEAD = 2, 4
"""Pieces that are written side by side, and those that are in memory at most."""


class NotInPieces(Exception):
    """The driver cannot take the records in, or Spark might see others in them. Nothing of them is stored."""


@dataclass(frozen=True)
class Written:
    """Files that no commit names yet, with the columns of ``stored``: rows that are added and removed, with
    multiplicity. ``records``: how many were taken in, where that is known without a Spark job. ``finish``: as in
    Change."""

    files: tuple[DataFile, ...]
    stored: Schema
    added: int
    removed: int
    records: int | None
    finish: Callable[[], dict[str, int]] = dict


def written(batch: EnvelopeInput, spec: SourceSpec, *, on_driver: bool = False) -> Written:
    """What the batch's records do to the source's collection. Raises what the envelope raises, and NotInPieces where
    they have to be ``on_driver`` and are not."""
    change = spec.envelope.apply(batch)
    if on_driver and not change.updates.is_local:
        raise NotInPieces
    files, stored, (added, removed) = _files(batch, change.updates, by_ranges=not change.is_arranged)
    if batch.gone is not None:  # in files of their own, so that bounds of old rows and of new ones stay apart
        more, _, (_, left) = _files(batch, batch.gone.negate(), by_ranges=True)
        files, removed = files + more, removed + left
    records = batch.records.estimate if batch.records.is_local else None
    return Written(files, stored, added, removed, records, change.finish)


def _files(
    batch: EnvelopeInput, rows: Relation, *, by_ranges: bool
) -> tuple[tuple[DataFile, ...], Schema, tuple[int, int]]:
    """Updates as files, what is stored of them, and how many rows they add and remove."""
    updates = localized(rows)
    stored = Schema((*(column for column in updates.schema if column.name != DIFF), TIME_COLUMN, DIFF_COLUMN))
    bounded = [column.name for column in stored if column.type in BOUNDED_TYPES][:16]
    uri = batch.place.trace_uri
    files = write(updates, uri, stored, batch.t, bounded=bounded, sort_by=batch.sort_by, by_ranges=by_ranges)
    if updates.table is None:
        return files, stored, count_stored(batch.place.storage, uri, files)
    return files, stored, count(updates.table.arrow[DIFF])


def written_in_pieces(batch: EnvelopeInput, spec: SourceSpec, pieces: Iterable[Relation]) -> Written:
    """The same of records that come in pieces, each of which is let go once it is written. Leaves no file behind where
    it fails. Raises NotInPieces, too."""
    begun: list[Future[Written]] = []
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for piece in pieces:
                begun.append(pool.submit(written, replace(batch, records=piece), spec, on_driver=True))
                if len(begun) > _AHEAD:
                    begun[-_AHEAD].result()
        return _together(batch, [future.result() for future in begun]) if begun else written(batch, spec)
    except BaseException as error:
        done = (future.result() for future in begun if not future.exception())
        remove_files(batch.place.storage, batch.place.trace_uri, [file for part in done for file in part.files])
        if isinstance(error, (Unclear, NotExact, OSError, pa.ArrowException, duckdb_error())):
            raise NotInPieces from error
        raise


def _together(batch: EnvelopeInput, parts: Sequence[Written]) -> Written:
    def finish() -> dict[str, int]:
        for part in parts:
            batch.inner.update(part.finish())
        return batch.inner

    return Written(
        tuple(file for part in parts for file in part.files),
        parts[0].stored,
        added=sum(part.added for part in parts),
        removed=sum(part.removed for part in parts),
        records=sum(part.records or 0 for part in parts),
        finish=finish,
    )
