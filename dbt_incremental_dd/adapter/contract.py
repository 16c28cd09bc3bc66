"""From a model's properties in dbt's graph to its contract and its description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbt.adapters.differential.warnings import warn_once

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.runtime.contract import CONSTRAINT_TYPES, Constraint, Contract
from dbt_incremental_dd.runtime.description import Description

_INSTEAD = {
    "foreign_key": "Write a `relationships` test instead",
    "custom": "Remove it",
}


def contract_of(name: str, model: Mapping[str, Any]) -> Contract | None:
    """The contract, if it is enforced. Raises ConfigError for a constraint that cannot be."""
    given = list(_constraints(model))
    settings = model["config"].get("contract") or {}
    if not settings.get("enforced"):
        if given:
            warn_once(
                (model.get("unique_id"), "constraints"),
                f"model {name}: its constraints are not enforced. Set `contract: {{enforced: true}}`, or remove them.",
            )
        return None
    columns = tuple((column["name"], str(column.get("data_type") or "")) for column in model["columns"].values())
    untyped = [column for column, dtype in columns if not dtype]
    if untyped or not columns:
        what = f"column {untyped[0]} of its contract has no data_type" if untyped else "its contract has no columns"
        raise ConfigError(f"model {name}: {what}", "Declare every column of the model with its data_type.")
    found = (_constraint(name, constraint, over) for constraint, over in given)
    return Contract(columns, tuple(dict.fromkeys(one for one in found if one is not None)))


def _constraints(model: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...]]]:
    """Those of columns, then those of the model, each with its columns."""
    for column in (model.get("columns") or {}).values():
        for constraint in column.get("constraints") or ():
            yield constraint, (column["name"],)
    for constraint in model.get("constraints") or ():
        yield constraint, tuple(constraint.get("columns") or ())


def _constraint(name: str, given: Mapping[str, Any], columns: tuple[str, ...]) -> Constraint | None:
    """None for one of which the user says that it need not be enforced."""
    kind = str(getattr(given["type"], "value", given["type"]))
    where = f" on {', '.join(columns)}" if columns else ""
    named = f"model {name}: constraint {given.get('name') or ''}".rstrip() + f" {kind}{where}"
    expression = str(given.get("expression") or "").strip()
    if kind not in CONSTRAINT_TYPES:
        if given.get("warn_unsupported") is False:
            return None
        raise ConfigError(
            f"{named} cannot be enforced",
            f"{_INSTEAD.get(kind, 'Remove it')}. With `warn_unsupported: false` it is a note that nothing checks.",
        )
    if kind == "check" and not expression:
        raise ConfigError(f"{named} has no expression", 'Write the condition: expression: "amount > 0".')
    if kind != "check" and expression:
        raise ConfigError(f"{named} has an expression, {expression!r}, which means nothing here", "Remove it.")
    if kind != "check" and not columns:
        raise ConfigError(f"{named} names no columns", "Name them: columns: [...].")
    return Constraint(kind, columns if kind != "check" else (), expression, str(given.get("name") or ""))  # type: ignore[arg-type]


def description_of(name: str, model: Mapping[str, Any]) -> Description:
    """What ``persist_docs`` and ``tblproperties`` want to be said of the relation. Raises ConfigError."""
    wanted = model["config"].get("persist_docs") or {}
    unknown = [key for key in wanted if key not in ("relation", "columns")] if isinstance(wanted, Mapping) else ["it"]
    if unknown:
        raise ConfigError(
            f"model {name}: persist_docs is {wanted!r}", "It has `relation: true`, `columns: true`, or both."
        )
    columns = (model.get("columns") or {}).values() if wanted.get("columns") else ()
    described = ((str(column["name"]), str(column.get("description") or "")) for column in columns)
    return Description(
        str(model.get("description") or "") if wanted.get("relation") else "",
        tuple((column, text) for column, text in described if text),
        _properties(name, model["config"].get("tblproperties") or {}),
    )


def _properties(name: str, given: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, Mapping) or any(isinstance(value, Mapping | list) for value in given.values()):
        raise ConfigError(f"model {name}: tblproperties is {given!r}", "Write name: value pairs.")
    texts = ((str(key), str(value).lower() if isinstance(value, bool) else str(value)) for key, value in given.items())
    return tuple(sorted(texts))
