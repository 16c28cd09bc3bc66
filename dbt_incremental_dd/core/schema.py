"""Schemas: ordered, named, typed columns. Types are in Spark's JSON form, which Delta shares."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TIME = "dd_time"
"""BIGINT, ms: when an update happens."""
DIFF = "dd_diff"
"""BIGINT, nonzero: the change of a row's multiplicity."""
_RESERVED = re.compile(r"dd_\w*", re.IGNORECASE)


def is_reserved(name: str) -> bool:
    """Whether a column of a source or a model cannot have this name: words that begin with ``dd_``, in any case."""
    return _RESERVED.fullmatch(name) is not None


@dataclass(frozen=True)
class Column:
    """``type`` is the text of Spark's JSON type: ``"long"``, ``"decimal(10,2)"`` or ``{"type":"struct",...}``."""

    name: str
    type: str

    @property
    def json_type(self) -> Any:
        """The type as a JSON value."""
        return json.loads(self.type) if self.type.startswith("{") else self.type


@dataclass(frozen=True)
class Schema:
    """Columns in order; names are distinct without regard to case."""

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
        """The column of that name, without regard to case."""
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)

    def select(self, names: tuple[str, ...]) -> Schema:
        """The named columns, in the given order."""
        by_name = {column.name: column for column in self.columns}
        return Schema(tuple(by_name[name] for name in names))

    def to_json(self) -> str:
        """Spark's ``StructType`` as JSON, all fields nullable."""
        fields = [{"name": c.name, "type": c.json_type, "nullable": True, "metadata": {}} for c in self.columns]
        return json.dumps({"type": "struct", "fields": fields})

    @staticmethod
    def from_json(text: str) -> Schema:
        """The schema of a ``StructType`` in JSON. Raises ValueError for a type that is not one of Spark's own: texts of
        types become SQL, and a user-defined type names code to load."""
        fields = json.loads(text)["fields"]
        for field in fields:
            _require_known(field["type"])
        return Schema(tuple(Column(str(f["name"]), type_text(f["type"])) for f in fields))


_SIMPLE = re.compile(
    r"[a-z_]+(\(\d+(, ?-?\d+)?\))?|interval [a-z]+( to [a-z]+)?|string collate \w+|geo[a-z]+\([\w:, ]+\)", re.ASCII
)
_NESTED = {"array": ("elementType",), "map": ("keyType", "valueType")}


def _require_known(json_type: Any) -> None:
    """Raises ValueError unless Spark's JSON has such a type."""
    if isinstance(json_type, str):
        if not _SIMPLE.fullmatch(json_type):
            raise ValueError(f"there is no type {json_type!r}")
        return
    kind = json_type["type"] if isinstance(json_type, dict) else None
    if kind == "struct":
        inside = [field["type"] for field in json_type["fields"]]
    elif kind in _NESTED:
        inside = [json_type[name] for name in _NESTED[kind]]
    else:
        raise ValueError(f"there is no type {kind!r}")
    for one in inside:
        _require_known(one)


def type_text(value: Any) -> str:
    """The canonical text of a JSON type value."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)


TIME_COLUMN = Column(TIME, "long")
DIFF_COLUMN = Column(DIFF, "long")
