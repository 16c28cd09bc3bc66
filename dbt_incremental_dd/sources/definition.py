"""What a source's settings say about its rows.

Where they change, rows that were taken in before are no longer those of a first intake. The source is taken in anew if
its connector can read everything again. Elsewhere the change is an error, unless only columns were added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.core.manifest import SourceManifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.logical.sql_types import sql_type, type_of
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.record_schema import declared_columns
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
    now = definition(spec, session)
    if not stored.definition:  # an earlier release kept the envelope alone
        return ("envelope",) if stored.envelope not in ("", now["envelope"]) else ()
    return _differing(stored.definition, now)


def with_new_columns(
    stored: SourceManifest, spec: SourceSpec, session: LazySession, changed: Sequence[str]
) -> SourceManifest:
    """The manifest of a source that cannot be read again, with the columns that its records have from now on. Raises
    SourceError unless columns were added and nothing else has changed."""
    columns = declared_columns(session, spec)
    may_grow = tuple(changed) == (COLUMNS,) and spec.envelope.takes_new_columns
    if may_grow and columns is not None and all(columns.find(one.name) == one for one in stored.records or ()):
        return replace(stored, records=columns)
    raise SourceError(
        f"source {spec.name}: {in_words(changed)}, and connector {spec.connector} cannot read again what was taken in",
        "Set it back, or remove the source's folder under state_root to take in what is still there.",
    )


def in_words(changed: Sequence[str]) -> str:
    """The settings that have changed, in words."""
    return f"its {' and '.join(changed)} changed"


def require_same(one: SourceSpec, other: SourceSpec, session: LazySession) -> None:
    """Raises ConfigError where two models of a run read the same source by different settings: each would take it in
    anew after the other."""
    differing = _differing(definition(one, session), definition(other, session))
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


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in {**one, **other} if one.get(name) != other.get(name))


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
