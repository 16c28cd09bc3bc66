"""Manifests: what a commit says of its collection, beside its files and frontiers.

Versions add entries. One that an older version did not write has its default when it is read, and is not written by
whoever rewrites the manifest, unless it has changed. Entries that this version does not know are kept as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple

from dbt_incremental_dd.core.manifest_form import flaw
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time

FORMAT_VERSION = 1
DEFAULT_RETAIN = 86_400_000
"""Ms of history that a collection keeps where nothing else is said."""

RunKind = Literal["build", "delta", "recompute"]


class RecordedRun(NamedTuple):
    """One run: updates that were new to it, all updates of its inputs then, and seconds up to its commit."""

    kind: RunKind
    changed: int
    total: int
    seconds: float

    @staticmethod
    def from_json(kind: RunKind | bool, changed: int, total: int, seconds: float) -> RecordedRun:  # noqa: FBT001
        """Former versions wrote whether the run was a build."""
        if isinstance(kind, bool):
            kind = "build" if kind else "delta"
        return RecordedRun(kind, changed, total, seconds)


@dataclass(frozen=True)
class RecordedChange:
    """What a commit of rows did; ``input_rows`` is None if it is not known."""

    strategy: str
    input_rows: int | None
    rows_added: int
    rows_removed: int
    seconds: float


@dataclass(frozen=True)
class StoredPosition:
    """The moment that the contents of the version stamped ``at`` show, and the latest time read of each input that is
    at another one."""

    at: Time
    as_of: Time
    inputs: Mapping[str, Time]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What all kinds of collections have in common.

    ``schema``: the visible columns. ``rows``: after the commit, with their multiplicity; None if that is not known.
    ``retain_history``: ms. ``inner``: the version of each state that belongs to the commit. ``sorted_by``: the columns
    by which the trace's files are sorted.

    An entry that is None is not written, except ``rows``. ``unsaid``: those that are not written as long as they have
    their defaults. ``others``: entries that this version does not know.
    """

    kind: str = ""
    schema: Schema | None = None
    rows: int | None = None
    change: RecordedChange | None = None
    retain_history: int = DEFAULT_RETAIN
    inner: Mapping[str, int] = field(default_factory=dict)
    sorted_by: tuple[str, ...] = ()
    unsaid: frozenset[str] = frozenset({"kind", "rows", "retain_history", "inner", "sorted_by"})
    others: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_json(entries: Mapping[str, Any]) -> Manifest:
        """The manifest of the kind that it names. Raises ValueError if an entry is not what this version writes."""
        wrong = flaw(entries)
        if wrong is not None:
            raise ValueError(f"its entry {wrong} is none of this version's")
        kind = _KINDS.get(entries.get("kind", ""), Manifest)
        names = kind.entries()
        said = {name: _READ[name](entries[name]) if name in _READ else entries[name] for name in names & entries.keys()}
        others = {name: value for name, value in entries.items() if name not in names and name != "format"}
        return kind(**said, unsaid=names - said.keys(), others=others)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        defaults = type(self)()
        said = {name: getattr(self, name) for name in self.entries()}
        written = {
            name: _plain(value)
            for name, value in said.items()
            if not (value is None and name != "rows") and not (name in self.unsaid and value == getattr(defaults, name))
        }
        return {"format": FORMAT_VERSION, **self.others, **written}

    @classmethod
    def entries(cls) -> frozenset[str]:
        """The names of the entries that this kind has."""
        return frozenset(one.name for one in fields(cls)) - {"unsaid", "others"}


@dataclass(frozen=True, kw_only=True)
class ModelManifest(Manifest):
    """Of a model. ``inputs``: the collection of each relation in the SQL. ``unique_id``: dbt's.

    ``position`` is None if all inputs have been read up to the model's own time. ``temporal``: rows may change
    without a change of an input. ``runs``: the latest of each kind, oldest first. ``can_recompute``: whether the query
    may be run as one, None if that is not known; ``has_ties``: it leaves ties open; ``behind``: the last run has
    left states behind. ``contract``: that which the rows keep to, empty if they keep to none.
    """

    kind: str = "model"
    fingerprint: str = ""
    relation: str = ""
    sql: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    position: StoredPosition | None = None
    temporal: bool = False
    can_recompute: bool | None = None
    has_ties: bool = False
    behind: bool = False
    fallbacks: tuple[str, ...] = ()
    unique_id: str = ""
    runs: tuple[RecordedRun, ...] = ()
    contract: str = ""
    unsaid: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class SourceManifest(Manifest):
    """Of a source. ``records``: the columns of its records. ``progress``: what its connector has read."""

    kind: str = "source"
    envelope: str = ""
    frontier: str = "auto"
    records: Schema | None = None
    progress: Mapping[str, Any] = field(default_factory=dict)
    unsaid: frozenset[str] = frozenset()


def kind_of(manifest: Manifest | None) -> str:
    """What a collection is, in messages."""
    return (manifest.kind if manifest is not None else "") or "collection"


def rows_after(before: Manifest | None, added: int, removed: int) -> int | None:
    """How many rows there are after a change; ``before`` is None if there was nothing."""
    rows = before.rows if before is not None else 0
    return None if rows is None else rows + added - removed


_KINDS: Mapping[str, type[Manifest]] = {"model": ModelManifest, "source": SourceManifest}

_READ: Mapping[str, Callable[[Any], Any]] = {
    "schema": Schema.from_json,
    "records": Schema.from_json,
    "change": lambda entry: RecordedChange(**{one.name: entry[one.name] for one in fields(RecordedChange)}),
    "position": lambda entry: StoredPosition(entry["at"], entry["as_of"], entry["inputs"]),
    "sorted_by": tuple,
    "fallbacks": tuple,
    "runs": lambda runs: tuple(RecordedRun.from_json(*run) for run in runs),
}
"""How entries are read that are not stored as they are."""


def _plain(value: Any) -> Any:
    """An entry as JSON has it."""
    if isinstance(value, Schema):
        return value.to_json()
    if isinstance(value, RecordedChange | StoredPosition):
        return asdict(value)
    if isinstance(value, tuple):
        return [list(item) if isinstance(item, tuple) else item for item in value]
    return dict(value) if isinstance(value, Mapping) else value
