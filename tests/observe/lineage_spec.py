"""Events as the client's own classes have them: each object is made of the class that the specification gives it, and
must have all that is required and nothing else."""

from __future__ import annotations

import importlib
import json
import pkgutil
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any

import attr
from openlineage.client import generated
from openlineage.client.event_v2 import RunEvent

from dbt_incremental_dd.observe.lineage_events import DifferentialRunFacet
from tests.observe.receiver import Receiver


def checked(event: Mapping[str, Any]) -> RunEvent:
    """The event, once it has been read. Raises AssertionError, TypeError or ValueError for what is none."""
    made = _read(RunEvent, event)
    assert isinstance(made, RunEvent)
    return made


def events_of(found: Receiver) -> list[RunEvent]:
    """All that a server has received, in order."""
    assert set(found.paths) <= {"/api/v1/lineage"}
    return [checked(json.loads(body)) for body in found.bodies]


def _read(kind: Any, value: Any) -> Any:
    options = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if value is None:
        assert type(None) in options, kind
        return None
    (kind,) = [one for one in options if one is not type(None)]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return [_read(args[0], one) for one in value]
    if origin is dict:
        return {name: _read(_facet(one) if _is_facet(args[1]) else args[1], one) for name, one in value.items()}
    if attr.has(kind):
        return _object(kind, value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    assert kind is Any or isinstance(value, kind), (kind, value)
    return value


def _object(kind: Any, value: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in attr.fields(kind)}
    unknown = set(value) - set(fields)
    assert not unknown, f"{kind.__name__} has no {unknown}"
    given = {name: _read(hints[name], one) for name, one in value.items()}
    made = kind(**{field.alias: given[name] for name, field in fields.items() if field.init and name in given})
    assert given.get("_schemaURL", "") in ("", getattr(made, "_schemaURL", "")), value
    return made


def _is_facet(kind: Any) -> bool:
    return isinstance(kind, type) and kind.__name__.endswith("Facet")


def _facet(value: Mapping[str, Any]) -> Any:
    return _facets()[value["_schemaURL"]]


@cache
def _facets() -> Mapping[str, Any]:
    """The classes of facets by the URLs of their schemas."""
    found: dict[str, Any] = {DifferentialRunFacet._get_schema(): DifferentialRunFacet}
    for module in pkgutil.iter_modules(generated.__path__, f"{generated.__name__}."):
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and attr.has(kind) and kind.__name__.endswith("Facet"):
                found[kind._get_schema()] = kind
    return found
