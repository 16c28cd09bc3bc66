"""What a source's settings say about its rows. Rows that were taken in by other settings are not those that the
settings mean now: they are taken in anew where the connector can, and an error elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.core.manifest import SourceManifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.logical.sql_types import sql_type, type_of
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.setting import setting_names
from dbt_incremental_dd.sources.spec import SourceSpec

COLUMNS = "columns"
_ZONE = "time zone"


class ColumnsChanged(SourceError):
    """The records' columns are not those that are stored. The remedy is to take the source in anew."""

    def __init__(self, source: str, changes: str) -> None:
        super().__init__(
            f"source {source}: its columns changed ({changes})",
            "Take it in anew: remove its folder under state_root, then run the models on it with --full-refresh.",
        )
        self.changes = changes


def definition(spec: SourceSpec, session: LazySession) -> dict[str, str]:
    """The settings by which records are read and are changes of rows, as texts; the session's time zone among them if
    they depend on it. Secrets are left out."""
    own = {name: getattr(spec, name) for name in spec.record_settings}
    given = {name: getattr(spec.settings, name) for name in setting_names(EnvelopeSettings)}
    texts = {name: _text(name, value, spec) for name, value in {**own, **given}.items() if value}
    return {"envelope": spec.envelope.name, **texts, **({_ZONE: session.dialect[0]} if spec.reads_local_times else {})}


def redefined(stored: SourceManifest, spec: SourceSpec, session: LazySession) -> tuple[str, ...]:
    """The settings that are others than those by which the source is stored, as far as these are known."""
    before, now = stored.definition or {"envelope": stored.envelope or spec.envelope.name}, definition(spec, session)
    names = {**before, **now} if stored.definition else before
    return tuple(name for name in names if before.get(name) != now.get(name))


def require_same(one: SourceSpec, other: SourceSpec, session: LazySession) -> None:
    """Raises ConfigError where two models of a run read the same source by different settings: each would take it in
    anew after the other."""
    first, second = definition(one, session), definition(other, session)
    differing = sorted(name for name in {**first, **second} if first.get(name) != second.get(name))
    if differing:
        raise ConfigError(
            f"source {one.name}: models read it by different settings ({', '.join(differing)})",
            "Read it by one source() or ref() in all models, or give both the same settings.",
        )


def require_columns(request: PollRequest[SourceSpec], found: Schema) -> None:
    """Raises ColumnsChanged where the columns are not those stored; new ones, NULL in old rows, are for envelopes that
    take them."""
    stored, spec = request.stored, request.spec
    if stored is None or stored == found:
        return
    new = [c.name for c in found if stored.find(c.name) is None]
    gone = [c.name for c in stored if found.find(c.name) is None]
    other = [c.name for c in stored if (own := found.find(c.name)) and own != c]
    if gone or other or not spec.envelope.takes_new_columns:
        named = {"new": new, "gone": gone, "other type or name": other}
        told = "; ".join(f"{what}: {', '.join(names)}" for what, names in named.items() if names)
        raise ColumnsChanged(spec.name, told or "in another order")


def _text(name: str, value: object, spec: SourceSpec) -> str:
    if name == COLUMNS:
        return ", ".join(f"{column} {_type(dtype)}" for column, dtype in spec.columns)
    if isinstance(value, Mapping):
        return json.dumps({key: own for key, own in sorted(value.items()) if own not in spec.secrets})
    return value if isinstance(value, str) else json.dumps(value)


def _type(dtype: str) -> str:
    """The same for each way to write a type, as far as it is known."""
    try:
        return sql_type(type_of(dtype))
    except ValueError:
        return dtype
