"""Options of Spark's readers, whose names Spark takes in any case."""

from __future__ import annotations

from collections.abc import Mapping


def option(options: Mapping[str, str], name: str, default: str) -> str:
    """The option's value."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), default)


def is_set(options: Mapping[str, str], name: str) -> bool:
    """Whether a switch is on."""
    return option(options, name, "false").lower() == "true"


def without(options: Mapping[str, str], *names: str) -> dict[str, str]:
    """The other options."""
    left_out = {name.lower() for name in names}
    return {key: value for key, value in options.items() if key.lower() not in left_out}


def parser_options(options: Mapping[str, str]) -> dict[str, str] | None:
    """The options as ``from_csv`` and ``from_json`` take them. None for none: Spark Connect makes a map of them, and an
    empty map has no type."""
    return dict(options) or None
