"""Spark's types as values. Their stored form is Spark's JSON, which Delta shares: ``"long"``, ``"decimal(10,2)"``,
``{"type":"array",...}``; a type's ``text`` is that form with sorted keys and no spaces.

Any part of a nested type may be NULL. Spark also says which parts never are. That depends on the plan, so two plans of
one query may differ in it, and Spark's tables do not keep it. It is dropped when a type is read.
"""

from __future__ import annotations

import json
import re
from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

_KNOWN: dict[tuple[type, str], Type] = {}


class _HashConsed(ABCMeta):
    """Values with the same text are one object, so they are compared and looked up by identity."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        return _KNOWN.setdefault((cls, made.text), made)


class Type(metaclass=_HashConsed):
    """Immutable; equal types are one object."""

    @property
    @abstractmethod
    def json(self) -> Any:
        """The type as a JSON value: a name, or an object."""

    @cached_property
    def text(self) -> str:
        """The stored form of the type."""
        return _text(self.json)

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return parse, (self.text,)


@dataclass(frozen=True, eq=False)
class Atomic(Type):
    """A type without parameters that are types: ``long``, ``char(3)``, ``interval day to second``, ``variant``."""

    name: str

    @property
    def json(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Decimal(Type):
    """Numbers of ``precision`` digits, ``scale`` of which follow the point."""

    precision: int
    scale: int

    @property
    def json(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, eq=False)
class Array(Type):
    """Elements of one type, in order."""

    element: Type

    @property
    def json(self) -> dict[str, Any]:
        return {"containsNull": True, "elementType": self.element.json, "type": "array"}


@dataclass(frozen=True, eq=False)
class Map(Type):
    """Values by keys, none of which is NULL."""

    key: Type
    value: Type

    @property
    def json(self) -> dict[str, Any]:
        return {
            "keyType": self.key.json,
            "type": "map",
            "valueContainsNull": True,
            "valueType": self.value.json,
        }


@dataclass(frozen=True)
class Field:
    """``metadata`` is a JSON object as text, with sorted keys and no spaces."""

    name: str
    type: Type
    metadata: str = "{}"

    @property
    def json(self) -> dict[str, Any]:
        """The field as a JSON value."""
        return {
            "metadata": json.loads(self.metadata),
            "name": self.name,
            "nullable": True,
            "type": self.type.json,
        }


@dataclass(frozen=True, eq=False)
class Struct(Type):
    """Named fields in order."""

    fields: tuple[Field, ...]

    @property
    def json(self) -> dict[str, Any]:
        return {"fields": [field.json for field in self.fields], "type": "struct"}


NESTED = (Array, Map, Struct)
_NAME = re.compile(
    r"[a-z_]+(\(\d+(, ?-?\d+)?\))?|interval [a-z]+( to [a-z]+)?|string collate \w+|geo[a-z]+\([\w:, ]+\)", re.ASCII
)
_DECIMAL = re.compile(r"decimal\((\d+), ?(-?\d+)\)", re.ASCII)


def parse(text: str) -> Type:
    """The type of a stored text. Raises ValueError unless it is one of Spark's own: types' names become SQL, and a
    user-defined type names code to load."""
    return _nested(text) if text.startswith("{") else _simple(text)


def from_json(value: Any) -> Type:
    """The type of a JSON value. Raises ValueError as ``parse`` does."""
    match value:
        case str():
            return _simple(value)
        case {"type": "struct", "fields": [*fields]}:
            return Struct(tuple(map(_field, fields)))
        case {"type": "array", "elementType": element, "containsNull": bool()}:
            return Array(from_json(element))
        case {"type": "map", "keyType": key, "valueType": of_values, "valueContainsNull": bool()}:
            return Map(from_json(key), from_json(of_values))
    raise ValueError(f"there is no type {value.get('type') if isinstance(value, dict) else value!r}")


def _field(value: Any) -> Field:
    match value:
        case {"name": str(name), "type": type, "nullable": bool(), "metadata": dict(metadata)}:
            return Field(name, from_json(type), _text(metadata))
    raise ValueError(f"{value!r} is no field of a struct")


@lru_cache(maxsize=1024)
def _nested(text: str) -> Type:
    return from_json(json.loads(text))


@lru_cache(maxsize=1024)
def _simple(name: str) -> Type:
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return Decimal(int(decimal[1]), int(decimal[2]))
    if not _NAME.fullmatch(name) or name.startswith("decimal("):
        raise ValueError(f"there is no type {name!r}")
    return Atomic(name)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)


BYTE, SHORT, INTEGER, LONG = INTEGERS = tuple(map(_simple, ("byte", "short", "integer", "long")))
FLOAT, DOUBLE = FLOATS = tuple(map(_simple, ("float", "double")))
STRING, BINARY, BOOLEAN = map(_simple, ("string", "binary", "boolean"))
DATE, TIMESTAMP, TIMESTAMP_NTZ = map(_simple, ("date", "timestamp", "timestamp_ntz"))
VOID, VARIANT, CALENDAR_INTERVAL = map(_simple, ("void", "variant", "calendarinterval"))
