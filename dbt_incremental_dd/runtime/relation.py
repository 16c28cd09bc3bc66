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
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Protocol

from pyspark.errors import AnalysisException

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.description import NOTHING, Description
from dbt_incremental_dd.runtime.relation_sql import SHAPES, Shape, shape_of, sum_sql, updates_sql
from dbt_incremental_dd.runtime.shown import Shown, keep_shown, links_of, mark_of, shown_by
from dbt_incremental_dd.runtime.swap import table_aside
from dbt_incremental_dd.storage import links
from dbt_incremental_dd.storage.copies import Copies
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log, total_rows


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
    shown = shown_by(place)
    if shown is None or shown.description != description or shown.columns != _digest(relation, schema.to_json()):
        return False
    if SHAPES.index(shape_of(log.files)) > SHAPES.index(shown.shape):
        return False
    if shown.folder and place.storage.is_local:
        return links.shows(f"{links_of(place)}/{shown.folder}", log.files)
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
        so_far = shown_by(place)
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
    return str(found["relation"]), Description.of(found["description"])


def _note(place: CollectionStore, relation: str, description: Description | None, before: str | None) -> str:
    if description is None:
        so_far = shown_by(place)
        description = due_relation(before)[1] if before else NOTHING if so_far is None else so_far.description
    return json.dumps({"relation": relation, "description": asdict(description)})


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
    shown = None if anew or not _are_there(catalog, relation) else shown_by(place)
    columns = _digest(relation, schema.to_json())
    if shown is not None and shown.columns != columns:
        shown = None
    shape = _shown_as(place, log.files)
    folder = _follow(place, log, shown, shape)
    if folder is None:
        folder = _links(place).link_all(links_of(place), log.uri, log.files) if log.files else 0
    named = "" if folder and place.storage.is_local else _digest(*sorted(file.path for file in log.files))
    now = Shown(shape, folder, mark_of(place, folder), columns=columns, files=named, description=description)
    if shown == now:
        return
    has_moved = shown is None or shown.folder != folder or (not folder and shown.files != named)
    updates = updates_sql(log, log.files, schema, f"{links_of(place)}/{folder}" if folder else None)
    if has_moved:
        _replace(catalog, changes_relation(relation), updates, can_alter=shown is not None)
    names_files = bool(folder) or shape != "sums"
    is_other = shown is None or (shown.shape, shown.description) != (shape, description)
    if is_other or (has_moved and names_files):
        sql = sum_sql(f"({updates})" if names_files else changes_relation(relation), schema, shape)
        can_alter = shown is not None and shown.description == description and not description.has_columns(schema)
        with table_aside(catalog, relation) if shown is None else nullcontext():
            _replace(catalog, relation, sql, can_alter=can_alter, head=description.head(schema))
    keep_shown(place, now, is_right_without=not has_moved and not is_other)
    if has_moved or place.storage.is_local:
        _links(place).forget(links_of(place), (folder, shown.folder if shown else 0))


def _are_there(catalog: Catalog, relation: str) -> bool:
    return all(catalog.has_view(name) for name in (changes_relation(relation), relation))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _follow(place: CollectionStore, log: Log, shown: Shown | None, shape: Shape) -> int | None:
    """The folder that is shown, if it has come to show the log; None where the relations have to be replaced: files
    that need another way of summing come into a new folder."""
    if shown is None or not shown.folder or not log.files or SHAPES.index(shape) > SHAPES.index(shown.shape):
        return None
    return shown.folder if _links(place).follow(f"{links_of(place)}/{shown.folder}", log.uri, log.files) else None


class _Links(Protocol):
    """Hard links, or copies in an object store."""

    def follow(self, folder: str, root: str, files: Iterable[DataFile]) -> bool: ...

    def link_all(self, folders: str, root: str, files: Iterable[DataFile]) -> int: ...

    def forget(self, folders: str, kept: Iterable[int]) -> None: ...


def _links(place: CollectionStore) -> _Links:
    return links if place.storage.is_local else Copies(place.storage.options)


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


def _shown_as(place: CollectionStore, files: Sequence[DataFile]) -> Shape:
    """How the relation adds them up. Few rows are summed from the beginning, at little cost: then the first deletion
    needs no other view."""
    return "sums" if total_rows(files) <= place.storage.thresholds.summed_rows else shape_of(files)
