"""What a version of an open table is, and what its format has to do.

Each data file has one column more than the table, which readers do not see: ``dd_position``, a number that no other row
of the table has, ascending by one from row to row. So a row that is found by its values is also found as a row of a
file, and is deleted by marking it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyroaring import BitMap64

POSITION = "dd_position"
POSITION_COLUMN = Column(POSITION, LONG)


@dataclass(frozen=True)
class TableFile:
    """``data``: the file, its path relative to the table's folder. ``deleted``: how many of its rows are, and
    ``vector``: which ones, as the format has it; None if none is."""

    data: DataFile
    deleted: int = 0
    vector: Mapping[str, Any] | None = None

    @property
    def first(self) -> int:
        """The position of its first row."""
        return int(self.data.bounds[POSITION][0])


@dataclass(frozen=True)
class TableVersion:
    """``uri``: the table's folder. ``upper``: the table has what its collection had before that time (ms). ``at``: the
    version's own time (ms). ``sorted_by``: the columns by which each of its files is sorted. ``retained``:
    ms for which others that maintain it keep former versions. ``features``: what
    readers have to know, by the format's names. ``is_ours``: nobody else has changed its rows or columns since."""

    uri: str
    number: int
    upper: Time
    at: Time
    schema: Schema
    sorted_by: tuple[str, ...]
    retained: int
    files: tuple[TableFile, ...]
    features: tuple[str, ...] = ()
    is_ours: bool = True

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(file.data.rows - file.deleted for file in self.files)


@dataclass(frozen=True)
class TableChange:
    """What one commit does. ``gone``: by the path of a file, the positions in it of all its deleted rows. ``changes``:
    files of the rows that come and go, for who follows the table. ``replaces``: the table's columns, where nothing of
    it stays. ``retained``: as in TableVersion. Without ``changes_rows`` the rows are what they were, in other files."""

    upper: Time
    retained: int
    came: Sequence[DataFile] = ()
    went: Sequence[TableFile] = ()
    gone: Mapping[str, BitMap64] = field(default_factory=dict)
    changes: Sequence[DataFile] = ()
    replaces: Schema | None = None
    sorted_by: tuple[str, ...] = ()
    changes_rows: bool = True


class Format(Protocol):
    """A format of tables; another one is a class with these, and its entry in the ``registry`` beside it."""

    changes_folder: str | None
    """Where files of changes are, below the table's folder; None where a table has none."""

    def require(self, name: str, schema: Schema) -> None:
        """Raises ConfigError for columns that a table of the format cannot have; ``name``: the model's."""

    def numbers(self, before: TableVersion | None, uri: str, schema: Schema) -> Mapping[str, int]:
        """The numbers that the columns of files of the version after ``before`` have, and what they nest, by their
        paths; none where they have none."""

    def load(self, storage: Storage, uri: str) -> TableVersion | None:
        """The latest version of the table in a folder; None where there is none. Raises OSError or ValueError where it
        cannot be read."""

    def deleted(self, storage: Storage, version: TableVersion, file: TableFile) -> BitMap64:
        """The positions of the file's deleted rows, in the file. Raises OSError or ValueError."""

    def commit(
        self, storage: Storage, uri: str, name: str, before: TableVersion | None, change: TableChange
    ) -> TableVersion:
        """The version after the change. Raises CommitConflict where another writer came first, StateError if it cannot
        be written; then nothing of it is visible."""

    def needed(self, storage: Storage, uri: str, since: Time) -> set[str] | None:
        """The paths below the table's folder that its versions from a time on (ms) need, its log among them; None where
        there is no table. What was needed before that is gone from the log afterwards."""


@dataclass(frozen=True)
class Table:
    """A collection's table in the folder ``uri``. ``sorted_by``: the columns by which the collection's files are.
    ``retained``: ms of history that the collection keeps."""

    name: str
    uri: str
    format: Format
    schema: Schema
    sorted_by: tuple[str, ...]
    retained: int
