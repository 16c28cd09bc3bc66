"""The relations that users query: ``<model>`` with the current rows, ``<model>__changes`` with the diff log.

Both read the trace's files: on a local disk by links in one folder, so that they need not be replaced after each
commit, elsewhere by name. ``<model>`` adds them up. Rows that were only ever inserted need no adding up; where
anything may have been deleted the sum is right for any files, so that there ``<model>`` can read
``<model>__changes``, and only the latter is replaced.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pyspark.errors import AnalysisException

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.logical.sql_types import sql_type
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.description import NOTHING, Description, pairs_of
from dbt_incremental_dd.runtime.swap import table_aside
from dbt_incremental_dd.storage.links import follow, forget, link_all, made, shows
from dbt_incremental_dd.storage.object_store import spark_uri
from dbt_incremental_dd.trace.columns import columns_of
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.spark_reader import quote_name

Shape = Literal["rows", "copies", "sums"]
_SHAPES: tuple[Shape, ...] = ("rows", "copies", "sums")
"""Each is right for what the ones before it are right for."""
_SHOWN = "collections/{}/shown.json"


@dataclass(frozen=True)
class Shown:
    """How a model's relations show its trace.

    ``folder``: the number of a folder of links, 0 where files are named; ``made``: the mark of that folder, 0 where
    there is none; ``columns`` and ``files``: digests of the relation's name and columns, and of the files' names;
    ``description``: what the relation says of itself.
    """

    shape: Shape
    folder: int
    made: int
    columns: str
    files: str
    description: Description = NOTHING


def changes_relation(relation: str) -> str:
    """The identifier of a model's diff log: ``a.b`` gives ``a.b__changes``."""
    return f"{relation[:-1]}__changes`" if relation.endswith("`") else f"{relation}__changes"


def stored_relation(place: CollectionStore, manifest: ModelManifest) -> str | None:
    """The relation that the manifest names, quoted; None where it names none. Raises StateError where it is not the
    model's own."""
    text = manifest.relation
    if not text:
        return None
    parts = [quoted or plain for quoted, plain in _PARTS.findall(text)]
    names = [part.replace("``", "`") for part in parts]
    if not _RELATION.fullmatch(text) or ".".join(names[-2:]).lower() != place.name:
        raise StateError(
            f"the manifest of {place.name} names the relation {text[:80]!r}, which is not its own",
            f"Rebuild it with `dbt run --full-refresh --select {place.name.split('.')[-1]}`.",
        )
    return text


_PARTS = re.compile(r"`((?:[^`]|``)+)`|(\w+)")
_RELATION = re.compile(rf"(?:{_PARTS.pattern})(?:\.(?:{_PARTS.pattern}))*")


def is_published(place: CollectionStore, relation: str, log: Log, schema: Schema, description: Description) -> bool:
    """Whether the relations, if nobody dropped them, show the log's contents: not so after a run that ended between
    its commit and theirs."""
    shown = _shown(place)
    if shown is None or shown.description != description or shown.columns != _digest(relation, schema.to_json()):
        return False
    if _SHAPES.index(shape_of(log.files)) > _SHAPES.index(shown.shape):
        return False
    if shown.folder:
        return shows(f"{_folders(place)}/{shown.folder}", log.files)
    return shown.files == _digest(*sorted(file.path for file in log.files))


def publish(
    catalog: Catalog,
    place: CollectionStore,
    relation: str,
    log: Log,
    schema: Schema,
    *,
    anew: bool,
    description: Description | None = None,
) -> None:
    """Makes both relations show the log's contents.

    ``anew``: they show other columns so far, or are elsewhere. Where the log's files are shown by links in a folder,
    one file more needs nothing else. Relations that somebody has dropped are made again. Without a ``description``
    the relation keeps the one that it has. If no session is open, and only our own sessions read the catalog, the next
    one does it (``publication``).
    """
    if _left_to_next_session(catalog, place, relation, description):
        return
    if description is None:
        so_far = _shown(place)
        description = NOTHING if so_far is None else so_far.description
    try:
        _publish(catalog, place, relation, log, schema, anew=anew, description=description)
    except AnalysisException:  # what they show is gone, by a run with another metastore
        _publish(catalog, place, relation, log, schema, anew=True, description=description)
    if catalog.session.memory.due is not None:
        catalog.session.memory.due.drop(place.name)


def _left_to_next_session(
    catalog: Catalog, place: CollectionStore, relation: str, description: Description | None
) -> bool:
    """Whether the relations are noted as due: no session is open, also not since the note was written."""
    due = catalog.session.memory.due
    if due is None or catalog.session.is_open:
        return False
    due.keep(place.name, _note(place, relation, description, due.notes.get(place.name)))
    catalog.note(relation, is_there=True)
    return not catalog.session.is_open


def due_relation(note: str) -> tuple[str, Description]:
    """The relation's name in SQL and its description, of a note that ``publish`` has left to the next session."""
    found = json.loads(note)
    return str(found["relation"]), _description(found["description"])


def _note(place: CollectionStore, relation: str, description: Description | None, before: str | None) -> str:
    if description is None:
        so_far = _shown(place)
        description = due_relation(before)[1] if before else NOTHING if so_far is None else so_far.description
    return json.dumps({"relation": relation, "description": asdict(description)})


def _description(found: Mapping[str, Any]) -> Description:
    """Raises ValueError for a JSON object that is none."""
    pairs = {name: pairs_of(found.get(name, ())) for name in ("columns", "properties")}
    return Description(str(found.get("comment", "")), **pairs)


def _publish(
    catalog: Catalog,
    place: CollectionStore,
    relation: str,
    log: Log,
    schema: Schema,
    *,
    anew: bool,
    description: Description,
) -> None:
    """Replaces whichever of the two views would say something else than it does.

    Each is right at any moment, also for whoever has read its text before, and lists the files after: what adds rows
    up in a way that is not right for every file names its files, or a folder that never gets other ones.
    """
    shown = None if anew or not _are_there(catalog, relation) else _shown(place)
    columns = _digest(relation, schema.to_json())
    if shown is not None and shown.columns != columns:
        shown = None
    shape = _shown_as(place, log.files)
    folder = _follow(place, log, shown, shape)
    if folder is None:
        folder = link_all(_folders(place), log.uri, log.files) if place.storage.is_local and log.files else 0
    named = "" if folder else _digest(*sorted(file.path for file in log.files))
    now = Shown(shape, folder, _made(place, folder), columns=columns, files=named, description=description)
    if shown == now:
        return
    has_moved = shown is None or (shown.folder, shown.files) != (now.folder, now.files)
    updates = _updates_sql(log, log.files, schema, f"{_folders(place)}/{folder}" if folder else None)
    if has_moved:
        _replace(catalog, changes_relation(relation), updates, can_alter=shown is not None)
    names_files = bool(folder) or shape != "sums"
    if shown is None or (shown.shape, shown.description) != (shape, description) or (has_moved and names_files):
        sql = _sum_sql(f"({updates})" if names_files else changes_relation(relation), schema, shape)
        can_alter = shown is not None and shown.description == description and not description.has_columns(schema)
        with table_aside(catalog, relation) if shown is None else nullcontext():
            _replace(catalog, relation, sql, can_alter=can_alter, head=description.head(schema))
    place.storage.write_small(_SHOWN.format(place.folder), json.dumps(asdict(now)))
    forget(_folders(place), (now.folder, shown.folder if shown else 0))


def _are_there(catalog: Catalog, relation: str) -> bool:
    return all(catalog.has_view(name) for name in (changes_relation(relation), relation))


def was_published(place: CollectionStore) -> bool:
    """Whether the collection's relations are in a catalog, as far as the state root knows."""
    return _told(place) is not None


def expect_published(place: CollectionStore) -> None:
    """Notes that the collection has relations, which show nothing of it yet: whoever adds to it makes them anew."""
    place.storage.write_small(_SHOWN.format(place.folder), json.dumps(asdict(Shown("rows", 0, 0, "", ""))))


def forget_published(place: CollectionStore) -> None:
    """The collection has no relations any more; the next run of its model makes them."""
    place.storage.write_small(_SHOWN.format(place.folder), "")


def _shown(place: CollectionStore) -> Shown | None:
    """None where nothing is known of it, or the folder is a copy, as after a restore: then it is made anew."""
    shown = _told(place)
    return shown if shown is None or shown.made == _made(place, shown.folder) else None


def _made(place: CollectionStore, folder: int) -> int:
    return made(f"{_folders(place)}/{folder}") if folder else 0


def _told(place: CollectionStore) -> Shown | None:
    """What the last run has noted, whether or not it is so."""
    try:
        text = place.storage.read_small(_SHOWN.format(place.folder))
        found = json.loads(text or "")
        said = found.pop("description", {})
        shown = Shown(**found, description=_description(said))
    except (ValueError, TypeError, AttributeError):
        return None
    is_right = shown.shape in _SHAPES and type(shown.folder) is int and shown.folder >= 0
    return shown if is_right else None


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _follow(place: CollectionStore, log: Log, shown: Shown | None, shape: Shape) -> int | None:
    """The folder that is shown, if it has come to show the log; None where the relations have to be replaced: files
    that need another way of summing come into a new folder."""
    if shown is None or not shown.folder or not log.files or _SHAPES.index(shape) > _SHAPES.index(shown.shape):
        return None
    return shown.folder if follow(f"{_folders(place)}/{shown.folder}", log.uri, log.files) else None


def _folders(place: CollectionStore) -> str:
    return f"{place.uri}/live"


def _replace(catalog: Catalog, relation: str, sql: str, *, can_alter: bool, head: str = "") -> None:
    """Makes the view show the query. Where it is there already, altering it takes the metastore half the time.

    ``head``: its description, which altering leaves as it is."""
    reached("view: before")
    spark = catalog.session.spark
    if can_alter:
        try:
            spark.sql(f"ALTER VIEW {relation} AS {sql}")
            reached("view: altered")
            return
        except AnalysisException:  # somebody has dropped it
            pass
    spark.sql(f"CREATE OR REPLACE VIEW {relation}{head} AS {sql}")
    catalog.note(relation, is_there=True)
    reached("view: made")


def shape_of(files: Sequence[DataFile]) -> Shape:
    """How updates add up to rows: one by one, as copies, or only when summed."""
    if any(file.min_diff < 1 for file in files):
        return "sums"
    return "copies" if any(file.max_diff > 1 for file in files) else "rows"


def _shown_as(place: CollectionStore, files: Sequence[DataFile]) -> Shape:
    """How the relation adds them up. Few rows are summed from the beginning, at little cost: then the first deletion
    needs no other view."""
    return "sums" if total_rows(files) <= place.storage.thresholds.summed_rows else shape_of(files)


def as_of_sql(storage: Storage, name: str, t: Time) -> str:
    """A query for a collection's contents as of ``t``. Raises FrontierError where that is not in its frontiers."""
    log, schema = require(storage, name)
    log.frontiers.require(t, name)
    files = log.summands(t)
    inner = f"({_updates_sql(log, files, schema)} WHERE {TIME} <= {t}L)"
    return _sum_sql(inner, schema, shape_of(files))


def changes_sql(storage: Storage, name: str, after: Time, up_to: Time) -> str:
    """A query for a collection's updates with ``after < dd_time <= up_to``, no two of which cancel out."""
    log, schema = require(storage, name)
    log.frontiers.require(up_to, name)
    log.frontiers.require(after, name)
    files = between(log.files, after, up_to)
    found = f"{_updates_sql(log, files, schema)} WHERE {TIME} > {after}L AND {TIME} <= {up_to}L"
    if not any(file.retracts_all for file in files):
        return found
    columns = f"{_columns(schema)}, {TIME}"
    summed = f"SELECT {columns}, sum({DIFF}) AS {DIFF} FROM ({found}) GROUP BY {columns}"
    return f"{summed} HAVING sum({DIFF}) <> 0"


def require(storage: Storage, name: str) -> tuple[Log, Schema]:
    """A collection's log and visible schema. Raises StateError, naming what there is, where it was never stored."""
    place = storage.collection(name)
    log = place.log()
    if log is None:
        known = ", ".join(other.name for other in storage.collections()) or "none"
        raise StateError(f"there is no collection {name} under {storage.root}", f"Known collections: {known}.")
    return log, columns_of(place, log)


def _columns(schema: Schema) -> str:
    return ", ".join(quote_name(column.name) for column in schema)


def _updates_sql(log: Log, files: Sequence[DataFile], schema: Schema, folder: str | None = None) -> str:
    """A query for the updates of some of the log's files, or of all those linked in a folder."""
    if not files:
        return f"SELECT * FROM ({no_rows_sql(Schema((*schema.columns, TIME_COLUMN, DIFF_COLUMN)))})"
    paths = _escaped(folder) if folder else _glob(spark_uri(log.uri), files)
    return f"SELECT {_columns(schema)}, {TIME}, {DIFF} FROM parquet.{quote_name(paths)}"


def no_rows_sql(schema: Schema) -> str:
    """A query of no rows with these columns."""
    nulls = (f"CAST(NULL AS {sql_type(c.type)}) AS {quote_name(c.name)}" for c in schema)
    return f"SELECT {', '.join(nulls)} LIMIT 0"


def _glob(uri: str, files: Sequence[DataFile]) -> str:
    paths = [file.path for file in files]
    return f"{_escaped(uri)}/{paths[0]}" if len(paths) == 1 else f"{_escaped(uri)}/{{{','.join(paths)}}}"


def _escaped(path: str) -> str:
    return "".join(f"\\{char}" if char in "{}[]*?\\" else char for char in path)


def _sum_sql(updates: str, schema: Schema, shape: Shape) -> str:
    columns = _columns(schema)
    if shape == "rows":
        return f"SELECT {columns} FROM {updates}"
    copies = f"LATERAL VIEW explode(array_repeat(0, CAST({DIFF} AS INT))) dd_copies AS dd_copy"
    if shape == "copies":
        return f"SELECT {columns} FROM {updates} {copies}"
    summed = f"SELECT {columns}, sum({DIFF}) AS {DIFF} FROM {updates} GROUP BY {columns} HAVING sum({DIFF}) > 0"
    return f"SELECT {columns} FROM ({summed}) {copies}"
