"""Manifests: a commit's description of its collection, beside its files and frontiers.

Versions of this package add entries. An entry that an older version did not write has its default when it is read, and
is written back only if it has changed. Unknown entries are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple

from dbt_incremental_dd.core.manifest_form import flaw
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.target_lag import TargetLag
from dbt_incremental_dd.core.time import Time

FORMAT_VERSION = 1
DEFAULT_RETAIN = 86_400_000
"""Default of ``retain_history``, in ms."""

RunKind = Literal["build", "delta", "recompute"]


class RecordedRun(NamedTuple):
    """One run: its kind, the number of updates new to it, the number of all updates of its inputs, the seconds up to
    its commit, and a mark of the inputs that had updates (empty if unknown)."""

    kind: RunKind
    changed: int
    total: int
    seconds: float
    news: str = ""

    @staticmethod
    def from_json(
        kind: RunKind | bool,  # noqa: FBT001
        changed: int,
        total: int,
        seconds: float,
        news: str = "",
    ) -> RecordedRun:
        """Former versions stored whether the run was a build, and no mark."""
        if isinstance(kind, bool):
            kind = "build" if kind else "delta"
        return RecordedRun(kind, changed, total, seconds, news)


@dataclass(frozen=True)
class RecordedChange:
    """The effect of a commit of rows; ``input_rows`` is None if unknown."""

    strategy: str
    input_rows: int | None
    rows_added: int
    rows_removed: int
    seconds: float


@dataclass(frozen=True)
class StoredPosition:
    """The moment that the contents of the version stamped ``at`` show, and the latest time read of each input that was
    read at another one."""

    at: Time
    as_of: Time
    inputs: Mapping[str, Time]


@dataclass(frozen=True)
class Adopted:
    """An existing ``table`` became the model's first contents ``at`` a time (ms). ``verified`` says by what they were
    compared with the query's answer, in words; empty if they were not."""

    table: str
    at: Time
    verified: str

    @property
    def message(self) -> str:
        """The adoption as users are told of it."""
        return f"adopted from {self.table}, {self.verified or 'not verified'}"


class UsedArrangement(NamedTuple):
    """A collection's arrangement by a column that a model finds keys in; ``idle``: runs since it last did."""

    collection: str
    column: str
    idle: int


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The entries that all kinds of collections share.

    ``schema``: the visible columns. ``rows``: their number after the commit, with multiplicity; None if unknown.
    ``retain_history``: ms. ``inner``: the version of each state that belongs to the commit. ``sorted_by``: the columns
    by which the trace's files are sorted.

    An entry that is None is not written, except ``rows``. ``implicit``: entries that are written only if they differ
    from their defaults. ``unknown``: entries that this version does not know.
    """

    kind: str = ""
    schema: Schema | None = None
    rows: int | None = None
    change: RecordedChange | None = None
    retain_history: int = DEFAULT_RETAIN
    inner: Mapping[str, int] = field(default_factory=dict)
    sorted_by: tuple[str, ...] = ()
    implicit: frozenset[str] = frozenset({"kind", "rows", "retain_history", "inner", "sorted_by"})
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_json(entries: Mapping[str, Any]) -> Manifest:
        """A manifest of the kind that its entries name. Raises ValueError if an entry has not the form that this
        version writes."""
        wrong = flaw(entries)
        if wrong is not None:
            raise ValueError(f"its entry {wrong} is none of this version's")
        kind = _KINDS.get(entries.get("kind", ""), Manifest)
        names = kind.entries()
        values = {
            name: _READ[name](entries[name]) if name in _READ else entries[name] for name in names & entries.keys()
        }
        unknown = {name: value for name, value in entries.items() if name not in names and name != "format"}
        return kind(**values, implicit=names - values.keys(), unknown=unknown)

    def to_json(self) -> dict[str, Any]:
        """The manifest as it is stored."""
        defaults = type(self)()
        values = {name: getattr(self, name) for name in self.entries()}
        written = {
            name: _plain(value)
            for name, value in values.items()
            if not (value is None and name != "rows")
            and not (name in self.implicit and value == getattr(defaults, name))
        }
        return {"format": FORMAT_VERSION, **self.unknown, **written}

    @classmethod
    def entries(cls) -> frozenset[str]:
        """The names of this kind's entries."""
        return frozenset(one.name for one in fields(cls)) - {"implicit", "unknown"}


@dataclass(frozen=True, kw_only=True)
class ModelManifest(Manifest):
    """A model's manifest. ``inputs``: the collection of each relation in the SQL. ``unique_id``: dbt's.

    ``position`` is None if all inputs have been read up to the model's own time. ``temporal``: rows may change without
    a change of an input. ``runs``: the latest ones of each kind, oldest first. ``can_recompute``: whether Spark can run
    the query as one; None if unknown. ``has_ties``: the query leaves ties open. ``behind``: the last run has not
    updated all states. ``contract``: the contract that the rows satisfy; empty if there is none.
    ``arrangements``: those of its inputs that it reads. ``history``: settings of the history that its rows are; empty
    if they are the query's. ``output``: the format of its open table; empty if it has none. ``target_lag``: ms,
    ``"downstream"``, or None if nothing is promised. ``adopted``: where its first contents come from; None if they were
    computed, or all rows have been since. ``unbuilt``: states that belong to the commit, and that the first run that
    needs them makes of the inputs' contents. A version that does not know them finds the model ``behind``, and builds
    it.
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
    arrangements: tuple[UsedArrangement, ...] = ()
    history: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    target_lag: TargetLag | None = None
    adopted: Adopted | None = None
    unbuilt: tuple[str, ...] = ()
    implicit: frozenset[str] = frozenset({"arrangements", "history", "output", "unbuilt"})


@dataclass(frozen=True, kw_only=True)
class SourceManifest(Manifest):
    """A source's manifest. ``records``: the columns of its records. ``progress``: its connector's position.
    ``kept_from``: the event time (ms) before which no rows are kept; None if all are. ``definition``: the settings by
    which its records were read; empty if they are unknown."""

    kind: str = "source"
    envelope: str = ""
    frontier: str = "auto"
    records: Schema | None = None
    progress: Mapping[str, Any] = field(default_factory=dict)
    kept_from: Time | None = None
    definition: Mapping[str, str] = field(default_factory=dict)
    implicit: frozenset[str] = frozenset({"definition"})


def kind_of(manifest: Manifest | None) -> str:
    """The kind of a collection, for messages."""
    return (manifest.kind if manifest is not None else "") or "collection"


def rows_after(before: Manifest | None, added: int, removed: int) -> int | None:
    """The number of rows after a change; None if unknown. ``before``: None if nothing was stored."""
    rows = before.rows if before is not None else 0
    return None if rows is None else rows + added - removed


_KINDS: Mapping[str, type[Manifest]] = {"model": ModelManifest, "source": SourceManifest}

_READ: Mapping[str, Callable[[Any], Any]] = {
    "schema": Schema.from_json,
    "records": Schema.from_json,
    "change": lambda entry: RecordedChange(**{one.name: entry[one.name] for one in fields(RecordedChange)}),
    "position": lambda entry: StoredPosition(entry["at"], entry["as_of"], entry["inputs"]),
    "adopted": lambda entry: Adopted(entry["table"], entry["at"], entry["verified"]),
    "unbuilt": tuple,
    "sorted_by": tuple,
    "fallbacks": tuple,
    "runs": lambda runs: tuple(RecordedRun.from_json(*run) for run in runs),
    "arrangements": lambda used: tuple(UsedArrangement(*one) for one in used),
}
"""Readers of the entries that are not stored as they are."""


def _items(value: tuple[Any, ...]) -> list[Any]:
    """A mark that is not there is not written."""
    return list(value[:-1] if isinstance(value, RecordedRun) and not value.news else value)


def _plain(value: Any) -> Any:
    """An entry as a JSON value."""
    if isinstance(value, Schema):
        return value.to_json()
    if isinstance(value, RecordedChange | StoredPosition | Adopted):
        return asdict(value)
    if isinstance(value, tuple):
        return [_items(item) if isinstance(item, tuple) else item for item in value]
    return dict(value) if isinstance(value, Mapping) else value
