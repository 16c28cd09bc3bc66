"""Checks the form of manifests: anybody who can write to the state root may have written them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.target_lag import DOWNSTREAM


def flaw(manifest: Mapping[str, Any]) -> str | None:
    """The first entry that has not the form that this version writes; None if there is none. Unknown entries are
    ignored."""
    return next((key for key, is_right in _FORMS.items() if key in manifest and not is_right(manifest[key])), None)


def _is_schema(value: Any) -> bool:
    try:
        Schema.from_json(value)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count_or_none(value: Any) -> bool:
    """A count, or None if unknown."""
    return value is None or _is_count(value)


def _is_run(value: Any) -> bool:
    is_right = isinstance(value, list) and len(value) in (4, 5) and all(map(_is_number, value[1:4]))
    is_right = is_right and all(isinstance(mark, str) for mark in value[4:])
    return is_right and (isinstance(value[0], bool) or value[0] in ("build", "delta", "recompute"))


def _is_used_arrangement(value: Any) -> bool:
    is_right = isinstance(value, list) and len(value) == 3 and _is_count(value[2])
    return is_right and all(isinstance(name, str) for name in value[:2])


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _is_position(value: Any) -> bool:
    counts = isinstance(value, dict) and all(_is_count(value.get(key)) for key in ("at", "as_of"))
    return counts and _is_mapping_of(_is_count)(value.get("inputs"))


def _is_change(value: Any) -> bool:
    is_right = isinstance(value, dict) and isinstance(value.get("strategy"), str) and _is_number(value.get("seconds"))
    counts = is_right and all(_is_count(value.get(key)) for key in ("rows_added", "rows_removed"))
    return counts and "input_rows" in value and _is_count_or_none(value["input_rows"])


def _is_adopted(value: Any) -> bool:
    texts = isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("table", "verified"))
    return texts and _is_count(value.get("at"))


def _is_mapping_of(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(is_right, value.values()))


_FORMS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        ("kind", "fingerprint", "relation", "sql", "unique_id", "envelope", "frontier", "contract", "output"), _of(str)
    ),
    **dict.fromkeys(("schema", "records"), _is_schema),
    **dict.fromkeys(("fallbacks", "sorted_by", "unbuilt"), _texts),
    "adopted": _is_adopted,
    **dict.fromkeys(("inputs", "definition"), _is_mapping_of(_of(str))),
    "inner": _is_mapping_of(_is_count),
    "runs": lambda value: isinstance(value, list) and all(map(_is_run, value)),
    "arrangements": lambda value: isinstance(value, list) and all(map(_is_used_arrangement, value)),
    **dict.fromkeys(("temporal", "can_recompute", "has_ties", "behind"), _of(bool)),
    **dict.fromkeys(("retain_history", "kept_from"), _is_count),
    "rows": _is_count_or_none,
    "target_lag": lambda value: value == DOWNSTREAM or (_is_count(value) and value > 0),
    "change": _is_change,
    "progress": _of(dict),
    "history": _of(dict),
    "position": _is_position,
}
