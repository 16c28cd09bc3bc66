"""Schemas that messages were written with, by their number, from a registry that speaks Confluent's protocol."""

from __future__ import annotations

import base64
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from dbt_incremental_dd.core.errors import SourceError

_ANSWER = 5.0
"""Seconds that the registry has for an answer."""
_KNOWN: dict[tuple[str, int], Any] = {}
"""A number's schema never changes."""
_LOCK = threading.Lock()


def schema_of_id(source: str, registry: Mapping[str, str], number: int) -> Any:
    """The parsed schema. ``registry``: its ``url``, and perhaps ``basic.auth.user.info``.

    Raises SourceError where there is none, or nobody answers.
    """
    from fastavro.schema import parse_schema

    key = (registry["url"], number)
    with _LOCK:
        if key not in _KNOWN:
            found = _asked(source, registry, f"schemas/ids/{number}")
            if found.get("schemaType", "AVRO") != "AVRO":
                raise SourceError(
                    f"source {source}: schema {number} of the registry is {found['schemaType']}, not Avro",
                    "Only Avro is read from a registry.",
                )
            named: dict[str, Any] = {}
            _add_references(source, registry, found, named)
            _KNOWN[key] = parse_schema(json.loads(found["schema"]), named)
        return _KNOWN[key]


def _add_references(source: str, registry: Mapping[str, str], found: Mapping[str, Any], named: dict[str, Any]) -> None:
    """The schemas that this one names, those that they name first."""
    from fastavro.schema import parse_schema

    for one in found.get("references") or ():
        subject = urllib.parse.quote(one["subject"], safe="")
        other = _asked(source, registry, f"subjects/{subject}/versions/{one['version']}")
        _add_references(source, registry, other, named)
        if one["name"] not in named:
            parse_schema(json.loads(other["schema"]), named)


def _asked(source: str, registry: Mapping[str, str], path: str) -> dict[str, Any]:
    url = f"{registry['url'].rstrip('/')}/{path}"
    request = urllib.request.Request(url)
    if user := registry.get("basic.auth.user.info"):
        request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as error:
        raise SourceError(
            f"source {source}: the schema registry has nothing at {url}: {error.code} {error.reason}",
            "Its messages name a schema that is not there. Check `schema.registry.url` and who may read it.",
        ) from error
    except (OSError, ValueError) as error:
        raise SourceError(
            f"source {source}: the schema registry at {registry['url']} does not answer: {error}",
            "Check `schema.registry.url`, and that it runs. Nothing is lost.",
        ) from error
