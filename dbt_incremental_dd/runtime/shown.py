"""What a collection's relations show of it: a note beside the trace, by which a run knows whether to replace them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from dbt_incremental_dd.runtime.description import NOTHING, Description
from dbt_incremental_dd.runtime.relation_sql import SHAPES, Shape
from dbt_incremental_dd.storage.links import made
from dbt_incremental_dd.trace.layout import CollectionStore

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


def was_published(place: CollectionStore) -> bool:
    """Whether the collection's relations are in a catalog, as far as the state root knows."""
    return _told(place) is not None


def expect_published(place: CollectionStore) -> None:
    """Notes that the collection has relations, which show nothing of it yet: whoever adds to it makes them anew."""
    keep_shown(place, Shown("rows", 0, 0, "", ""))


def forget_published(place: CollectionStore) -> None:
    """The collection has no relations any more; the next run of its model makes them."""
    place.storage.write_small(_SHOWN.format(place.folder), "")


def keep_shown(place: CollectionStore, shown: Shown, *, is_right_without: bool = False) -> None:
    """Notes it for later runs. ``is_right_without``: what was noted before tells the same relations."""
    write = place.storage.write_small_later if is_right_without else place.storage.write_small
    write(_SHOWN.format(place.folder), json.dumps(asdict(shown)))


def links_of(place: CollectionStore) -> str:
    """The folder of the collection's folders of links."""
    return f"{place.uri}/live"


def shown_by(place: CollectionStore) -> Shown | None:
    """How the relations show it. None where nothing is known of it, or the folder is a copy, as after a restore: then
    they are made anew."""
    shown = _told(place)
    return shown if shown is None or shown.made == mark_of(place, shown.folder) else None


def mark_of(place: CollectionStore, folder: int) -> int:
    """The mark of a folder of links, 0 for none."""
    return made(f"{links_of(place)}/{folder}") if folder and place.storage.is_local else 0


def _told(place: CollectionStore) -> Shown | None:
    """What the last run has noted, whether or not it is so."""
    try:
        text = place.storage.read_small(_SHOWN.format(place.folder))
        found = json.loads(text or "")
        said = found.pop("description", {})
        shown = Shown(**found, description=Description.of(said))
    except (ValueError, TypeError, AttributeError):
        return None
    is_right = shown.shape in SHAPES and type(shown.folder) is int and shown.folder >= 0
    return shown if is_right else None
