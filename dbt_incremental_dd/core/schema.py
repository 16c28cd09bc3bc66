"""Schemas: ordered, named, typed columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from dbt_incremental_dd.core.types import LONG, Type, from_json

TIME = "dd_time"
"""BIGINT, ms: when an update happens."""
DIFF = "dd_diff"
"""BIGINT, nonzero: the change of a row's multiplicity."""
_RESERVED = re.compile(r"dd_\w*", re.IGNORECASE)


def is_reserved(name: str) -> bool:
    """Whether a name is reserved: it begins with ``dd_``, in any case. Columns of sources and models cannot have it."""
    return _RESERVED.fullmatch(name) is not None


@dataclass(frozen=True)
class Column:
    """A name and a type; every column may be NULL."""

    name: str
    type: Type


@dataclass(frozen=True)
class Schema:
    """Ordered columns; names are distinct, case-insensitively."""

    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __add__(self, other: Schema) -> Schema:
        return Schema(self.columns + other.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    def find(self, name: str) -> Column | None:
        """The column of that name, case-insensitively; None if there is none."""
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)

    def select(self, names: tuple[str, ...]) -> Schema:
        """The named columns, in the given order."""
        by_name = {column.name: column for column in self.columns}
        return Schema(tuple(by_name[name] for name in names))

    def to_json(self) -> str:
        """Spark's ``StructType`` as JSON, all fields nullable."""
        return self._json

    @cached_property
    def _json(self) -> str:
        fields = [{"name": c.name, "type": c.type.json, "nullable": True, "metadata": {}} for c in self.columns]
        return json.dumps({"type": "struct", "fields": fields})

    @staticmethod
    def from_json(text: str) -> Schema:
        """The schema of a ``StructType`` in JSON. Raises ValueError for a type that is not one of Spark's own."""
        return _schema(text)


@lru_cache(maxsize=256)
def _schema(text: str) -> Schema:
    return Schema(tuple(Column(str(f["name"]), from_json(f["type"])) for f in json.loads(text)["fields"]))


TIME_COLUMN = Column(TIME, LONG)
DIFF_COLUMN = Column(DIFF, LONG)
