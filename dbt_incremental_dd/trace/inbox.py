"""The inbox of a source: what clients have sent it, a file for each request that was accepted, until an intake.

    <collection>/inbox.json                  what the server has to know of the source
    <collection>/inbox/new/<name>.json       accepted; a few of them may have been taken in
    <collection>/inbox/taken/<name>.json     taken in, and kept for as long as their keys are remembered

A file's name is a hash of the key by which its client repeats the request. A file that is taken in is moved in such a
way that it is always in one of the folders. So whoever accepts a request looks into ``taken`` before and after it
creates the file in ``new``: if the file has moved in between, it is found in ``taken``, and the one in ``new`` does not
count. An intake that lists ``new`` leaves out what is in ``taken`` for the same reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.storage import created
from dbt_incremental_dd.trace.layout import CollectionStore

_ATTEMPTS = 5
"""Of creating a file that others remove at the same time."""


@dataclass(frozen=True)
class InboxSettings:
    """``remember_keys`` in ms, from the intake on; ``inbox_bytes``: what may wait."""

    remember_keys: int
    inbox_bytes: int


class Inbox:
    """Stateless: each call reads what is stored now. All methods raise OSError if the storage fails."""

    def __init__(self, place: CollectionStore) -> None:
        self._storage = place.storage
        self._options = place.storage.options
        self._settings_path = f"collections/{place.folder}/inbox.json"
        self._settings_uri = f"{place.uri}/inbox.json"
        self.new = f"{place.uri}/inbox/new"
        """The URI of the folder of what is to be taken in."""
        self.taken = f"{place.uri}/inbox/taken"
        """The URI of the folder of what has been."""

    def settings(self) -> InboxSettings | None:
        """As an intake has last declared them; None if the source has no inbox. Raises StateError if they cannot be
        read."""
        text = self._storage.read_small(self._settings_path)
        try:
            return None if text is None else InboxSettings(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise StateError(
                f"{self._settings_uri} cannot be read: {error}", "Remove it: the next run writes it anew."
            ) from error

    def declare(self, settings: InboxSettings) -> None:
        """From now on the source has an inbox, with these settings."""
        self._storage.write_small(self._settings_path, json.dumps(asdict(settings)))

    def accept(self, key: str, data: bytes) -> bool:
        """Adds what was sent with a key, unless it was added before. It is durable on return. False if something else
        was sent with this key: then nothing is added."""
        name = f"{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}.json"
        for _ in range(_ATTEMPTS):
            known = created.read(f"{self.taken}/{name}", self._options)
            if known is not None:
                return known == data
            try:
                is_same = created.create(f"{self.new}/{name}", data, self._options)
            except FileNotFoundError:  # it was moved in between
                continue
            known = created.read(f"{self.taken}/{name}", self._options)
            if known is None:
                return is_same
            if is_same:
                self.discard([name])
            return known == data
        raise OSError(f"{self.new}/{name} is removed whenever it is created")

    def waiting(self) -> dict[str, int]:
        """The files in ``new``: names and bytes."""
        return created.sizes(self.new, self._options)

    def repeated(self, names: Collection[str]) -> set[str]:
        """Those of the files in ``new`` that are in ``taken`` as well."""
        return created.present(self.taken, names, self._options)

    def put_away(self, names: Collection[str]) -> None:
        """Moves files that have been taken in. Call it as the source's writer."""
        created.move(self.new, self.taken, names, self._options)

    def discard(self, names: Collection[str]) -> None:
        """Removes files from ``new`` that are in ``taken`` as well."""
        created.remove(self.new, names, self._options)
