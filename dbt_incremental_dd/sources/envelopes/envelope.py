"""What an envelope is: how the records of one intake become updates of the source's collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.envelopes.reserved import refuse_reserved
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Change:
    """The collection's updates: stored columns and ``dd_diff``, consolidated. ``finish`` runs before the commit.

    ``is_arranged``: in Spark their parts are ranges of what the collection is sorted by.
    """

    updates: Relation
    finish: Callable[[], dict[str, int]] = dict
    is_arranged: bool = False


@dataclass(frozen=True, kw_only=True)
class EnvelopeInput:
    """One intake of the source ``name``. ``settings`` spell columns as ``schema`` does, the visible columns;
    ``records`` are the good ones, ``location`` is where they are from; ``log`` is None at the first intake; ``inner``:
    versions of inner traces. ``sort_by``: what the collection is sorted by. ``gone``: stored rows that leave, whatever
    the records say of others."""

    workspace: Workspace
    name: str
    location: str | None
    settings: EnvelopeSettings
    place: CollectionStore
    log: Log | None
    schema: Schema
    result: PollResult
    records: Relation
    t: Time
    sort_by: tuple[str, ...]
    gone: Relation | None = None
    inner: dict[str, int] = field(default_factory=dict)

    def plus_minus(self) -> Relation:
        """The visible columns of new records with +1, and of removed ones with -1; what was only moved cancels."""
        names, removed = self.schema.names, self.result.removed
        new = self.records.columns(names)
        return new if removed is None else net(new, removed.columns(names))

    def refuse_null_keys(self, counts: Mapping[str, int]) -> None:
        """Raises SourceError if a key column is NULL in any record; ``counts``: in how many, by column."""
        for name, count in counts.items():
            if count:
                where = f" at {self.location}" if self.location else ""
                raise SourceError(
                    f"source {self.name}: key column {name} is NULL in {count} new record(s){where}",
                    f"Every record of an upsert needs its key, in a field called {name}. Correct the feed, or choose "
                    "another key.",
                )


@dataclass(frozen=True)
class Requirement:
    """Settings one of which has to be made, and how that is done."""

    any_of: tuple[str, ...]
    remedy: str


KEY = Requirement(("key",), "Name the columns that identify a row: key: [id].")


class Envelope(Protocol):
    """How records are changes of rows. The defaults are those of records that are rows."""

    name: ClassVar[str]
    """As the setting ``envelope`` has it, and the manifests of collections."""
    is_whole: ClassVar[bool] = False
    """Whether the records are all that there is, so that changes are found by comparing."""
    is_implied: ClassVar[bool] = False
    """Whether it follows from a connector, and is not for others."""
    takes_new_columns: ClassVar[bool] = False
    """Whether the records may have further columns later: those are NULL in the rows that are stored."""
    is_keyed_by_feed: ClassVar[bool] = False
    """Whether a feed that has keys and an order of its own says with them which row a record is, and which is later."""
    ignores_nulls: ClassVar[bool] = False
    """Whether a record of nothing says nothing; for others it is malformed, or a delete."""
    requires: ClassVar[Requirement | None] = None
    """The settings without which it is none."""
    formats: ClassVar[tuple[str, ...]] = ()
    """The formats that its records can be written in; all if there are none."""

    def __str__(self) -> str:
        return self.name

    def record_of(self, row: StructType) -> StructType:
        """The columns of records, by those that the source declares."""
        return row

    def record_found(self, source: str, settings: EnvelopeSettings, found: StructType) -> StructType:
        """The columns of records, by those that Spark finds in them. Raises SourceError if they are none of it."""
        refuse_reserved(source, settings, found.names)
        return found

    def visible_schema(self, settings: EnvelopeSettings, records: Schema) -> Schema:
        """The columns that queries see."""
        return records

    def needed_columns(self, settings: EnvelopeSettings) -> tuple[str, ...]:
        """Those that have to be among the visible ones."""
        return (*settings.key, *settings.order_by)

    def sort_key(self, settings: EnvelopeSettings) -> tuple[str, ...]:
        """The columns that the collection is sorted by, if any."""
        return ()

    def takes_pieces(self, settings: EnvelopeSettings) -> bool:
        """Whether an intake's updates are those of its parts, where all records of a key are in one part.
        ``Change.finish`` of one runs after those of the parts before it, and must not hold the records."""
        return False

    def apply(self, batch: EnvelopeInput) -> Change:
        """What the records do to the stored rows. Raises SourceError, naming the source, for those that say nothing."""
        ...


def net(new: Relation, old: Relation) -> Relation:
    """The updates that make the new rows of the old ones."""
    changed = plus([new, old.negate()])
    assert changed is not None
    return changed.consolidate()
