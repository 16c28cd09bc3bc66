"""The history that a model's config, or a snapshot's, asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.history.history import COLUMNS, History, Role

_SETTINGS = ("unique_key", "updated_at", "names")
_SNAPSHOT_NAMES: tuple[tuple[Role, str], ...] = (
    ("id", "dbt_scd_id"),
    ("updated", "dbt_updated_at"),
    ("from", "dbt_valid_from"),
    ("to", "dbt_valid_to"),
)
_MARK: tuple[Role, str] = ("deleted", "dbt_is_deleted")
_DELETES: Mapping[str, Literal["close", "keep", "record"]] = {
    "ignore": "keep",
    "invalidate": "close",
    "new_record": "record",
}
"""What each of dbt's ``hard_deletes`` is here."""
SNAPSHOTS_OWN = ("unique_key", "strategy")
"""Settings of snapshots that mean something else to a model, or nothing."""


def history_of(name: str, settings: Mapping[str, Any]) -> History | None:
    """The history that the config of a model or a snapshot asks for; None where a model's rows are stored themselves.
    Raises ConfigError for a setting that means nothing."""
    if settings.get("materialized") == "snapshot":
        return _of_snapshot(name, settings)
    asked = settings.get("history")
    if asked in (None, False):
        return None
    given = {} if asked is True else asked
    if not isinstance(given, Mapping):
        remedy = f"It may be true, or settings: {', '.join(_SETTINGS)}."
        raise ConfigError(f"model {name}: history is {asked!r}", remedy)
    unknown = [key for key in given if key not in _SETTINGS]
    if unknown:
        remedy = f"There are {', '.join(_SETTINGS)}."
        raise ConfigError(f"model {name}: unknown setting history.{unknown[0]}", remedy)
    key, time = _key(f"model {name}: history.unique_key", given.get("unique_key")), given.get("updated_at") or ""
    if time and not key:
        message = f"model {name}: history.updated_at says when a version begins, but not of what"
        raise ConfigError(message, "Set history.unique_key too.")
    return History(key=key, time=_text(f"model {name}: history.updated_at", time), columns=_columns(name, given))


def _columns(name: str, given: Mapping[str, Any]) -> tuple[tuple[Role, str], ...]:
    """The added columns under the names that they are given."""
    own = given.get("names") or {}
    defaults = {default: role for role, default in COLUMNS}
    if not isinstance(own, Mapping) or not set(own) <= set(defaults):
        remedy = f"It gives other names to {', '.join(defaults)}: {{valid_from: since}}."
        raise ConfigError(f"model {name}: history.names is {own!r}", remedy)
    return tuple((role, str(own.get(default, default))) for default, role in defaults.items())


def _of_snapshot(name: str, settings: Mapping[str, Any]) -> History:
    subject = f"snapshot {name}"
    strategy, deletes = settings.get("strategy"), _deletes(subject, settings)
    if strategy not in ("timestamp", "check"):
        raise ConfigError(
            f"{subject}: strategy is {strategy!r}",
            "It may be timestamp or check. One of your own needs `file_format: delta`, with which dbt-spark serves it.",
        )
    key = _key(f"{subject}: unique_key", settings.get("unique_key"))
    time = _text(f"{subject}: updated_at", settings.get("updated_at") or "")
    checked = settings.get("check_cols")
    compared = ("*",) if checked == "all" else tuple(map(str, checked or ()))
    own = settings.get("snapshot_meta_column_names") or {}
    names = (*_SNAPSHOT_NAMES, _MARK) if deletes == "record" else _SNAPSHOT_NAMES
    try:
        return History(
            key=key,
            time=time,
            compared=compared if strategy == "check" else (),
            mends=False,
            deletes=deletes,
            open_end=str(settings.get("dbt_valid_to_current") or "NULL"),
            columns=tuple((role, str(own.get(default) or default)) for role, default in names),
        )
    except ValueError as error:
        raise ConfigError(f"{subject}: dbt_valid_to_current: {error}", "Write to_date('9999-12-31'), or so.") from error


def _deletes(subject: str, settings: Mapping[str, Any]) -> Literal["close", "keep", "record"]:
    wanted = settings.get("hard_deletes") or ("invalidate" if settings.get("invalidate_hard_deletes") else "ignore")
    if wanted not in _DELETES:
        raise ConfigError(f"{subject}: hard_deletes is {wanted!r}", f"It may be {', '.join(_DELETES)}.")
    return _DELETES[wanted]


def _key(subject: str, given: Any) -> tuple[str, ...]:
    """The names of columns. Raises ConfigError for anything else."""
    names = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{subject} is {given!r}", "It is a column's name, or a list of them.")
    return tuple(names)


def _text(subject: str, given: Any) -> str:
    if not isinstance(given, str):
        raise ConfigError(f"{subject} is {given!r}", "It is the name of a column of dates or times.")
    return given
