"""From the settings under ``config: meta: differential:`` of a dbt source table to how the source is read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import is_reserved
from dbt_incremental_dd.sources.connectors.registry import CONNECTORS
from dbt_incremental_dd.sources.envelopes.envelope import Envelope
from dbt_incremental_dd.sources.envelopes.registry import DEFAULT, ENVELOPES
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.setting import Written, chosen, did_you_mean, read_settings
from dbt_incremental_dd.sources.spec import SourceSpec, secrets_of

__all__ = ["SourceSpec", "parse_source"]


def parse_source(
    name: str,
    relation: str,
    meta: Mapping[str, Any],
    columns: Mapping[str, str | None],
    project_dir: str,
) -> SourceSpec:
    """The spec of a source from its settings. Raises ConfigError, naming the source and the key, for what is wrong.

    ``columns`` are those that the source declares, with their types where it does; a relative path is taken from
    ``project_dir``.
    """
    _refuse_reserved(name, meta, columns)
    kind = _kind(name, meta)
    envelope = _envelope(name, meta, kind)
    _refuse_foreign(name, meta, kind)
    given = kind.completed(name, {key: value for key, value in meta.items() if key in kind.known_settings()})
    settings = {key: value for key, value in given.items() if key in kind.envelope_settings}
    spec = kind(
        name=name,
        relation=relation,
        envelope=envelope,
        settings=EnvelopeSettings(**read_settings(EnvelopeSettings, name, settings, project_dir)),
        columns=tuple((column, str(dtype)) for column, dtype in columns.items() if dtype),
        untyped=tuple(column for column, dtype in columns.items() if not dtype),
        secrets=secrets_of(Written(name, "options", given.get("options"), project_dir)),
        **read_settings(kind, name, given, project_dir),
    )
    _require(spec)
    _check_keep(spec)
    spec.check()
    return spec


def _refuse_reserved(name: str, meta: Mapping[str, Any], columns: Mapping[str, str | None]) -> None:
    for column in columns:
        if is_reserved(column) and column not in (meta.get("diff_column"), meta.get("op_column")):
            raise ConfigError(
                f"source {name}: column {column} has a reserved name: those that begin with dd_ are",
                "Rename the column, or read a view in which it has another name.",
            )


def _kind(name: str, meta: Mapping[str, Any]) -> type[SourceSpec]:
    """The connector's kind of spec. Raises ConfigError for a setting that no connector knows."""
    known = _known_settings()
    unknown = next((key for key in meta if key not in known), None)
    if unknown is not None:
        hint = did_you_mean(unknown, list(known))
        raise ConfigError(f"source {name}: unknown setting differential.{unknown}", f"{hint}Known: {', '.join(known)}.")
    connector = chosen(name, "connector", meta.get("connector", _implied_connector(meta)), tuple(CONNECTORS))
    kind: type[SourceSpec] = CONNECTORS[connector].SPEC
    return kind


def _refuse_foreign(name: str, meta: Mapping[str, Any], kind: type[SourceSpec]) -> None:
    """Raises ConfigError for a setting that only other connectors know."""
    known = _known_settings()
    foreign = next((key for key, value in meta.items() if value and kind.connector not in known[key]), None)
    if foreign is not None:
        others = f"connector{'s' * (len(known[foreign]) > 1)} {', '.join(known[foreign])}"
        raise ConfigError(
            f"source {name}: {foreign} means nothing to connector {kind.connector}, which reads {kind.reads}",
            f"{foreign} is for {others}: name another connector, or leave {foreign} out.",
        )


@cache
def _known_settings() -> Mapping[str, tuple[str, ...]]:
    """The connectors that know it, by setting."""
    known: dict[str, tuple[str, ...]] = {"connector": tuple(CONNECTORS)}
    for connector, module in CONNECTORS.items():
        for key in module.SPEC.known_settings():
            known[key] = (*known.get(key, ()), connector)
    return known


def _implied_connector(meta: Mapping[str, Any]) -> str:
    if meta.get("path") is None:
        return "table"
    return "delta" if meta.get("format") == "delta" else "files"


def _envelope(name: str, given: Mapping[str, Any], kind: type[SourceSpec]) -> Envelope:
    """As it is set, or follows from the connector. Raises ConfigError for one that is not for the connector."""
    implied = kind.implied_envelope
    found = ENVELOPES[chosen(name, "envelope", given.get("envelope", str(implied or DEFAULT)), tuple(ENVELOPES))]
    if found.is_implied if implied is None else found.name != implied.name:
        raise ConfigError(
            f"source {name}: envelope {found} is not for connector {kind.connector}",
            "Leave envelope out: it follows from the connector." if implied else "Choose another envelope.",
        )
    return found


def _require(spec: SourceSpec) -> None:
    """Raises ConfigError if a setting is missing that the envelope needs."""
    needed = spec.envelope.requires
    if needed is not None and not any(getattr(spec.settings, name) for name in needed.any_of):
        raise ConfigError(
            f"source {spec.name}: envelope {spec.envelope} needs "
            f"{' or '.join(f'differential.{name}' for name in needed.any_of)}",
            needed.remedy,
        )


def _check_keep(spec: SourceSpec) -> None:
    """Raises ConfigError if the source keeps rows by a time that they do not have, or that may change."""
    if spec.keep is None:
        return
    if spec.event_time is None:
        raise ConfigError(
            f"source {spec.name}: differential.keep needs differential.event_time",
            "Name the column with the time by which rows get old.",
        )
    if spec.envelope.name != "append":
        raise ConfigError(
            f"source {spec.name}: keep is for envelope append, not for {spec.envelope}",
            "Leave keep out: rows that have a key are deleted by records of theirs.",
        )
