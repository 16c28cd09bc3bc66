"""Settings as fields of dataclasses: how each is read from what the user wrote.

``key: tuple[str, ...] = setting(names, ())`` is a setting called ``key``.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.time import parse_duration


@dataclass(frozen=True)
class Written:
    """One setting of a source as the user wrote it."""

    source: str
    key: str
    value: Any
    project_dir: str


Read = Callable[[Written], Any]
"""The value that a setting means. Raises ConfigError, naming the source and the key, if it means none."""


def setting(read: Read, default: Any = None) -> Any:
    """A dataclass's field that users may set."""
    return field(default=default, metadata={"read": read})


def setting_names(kind: type) -> tuple[str, ...]:
    """The settings of a dataclass."""
    return tuple(own.name for own in fields(kind) if "read" in own.metadata)


def read_settings(kind: type, source: str, given: Mapping[str, Any], project_dir: str) -> dict[str, Any]:
    """The fields' values of those settings that are given. Raises ConfigError."""
    readers: dict[str, Read] = {own.name: own.metadata["read"] for own in fields(kind) if "read" in own.metadata}
    return {key: read(Written(source, key, given[key], project_dir)) for key, read in readers.items() if key in given}


def text(written: Written) -> str | None:
    """A text; NULL is none."""
    return None if written.value is None else str(written.value)


def names(written: Written) -> tuple[str, ...]:
    """One name or several."""
    value = written.value
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(str(item) for item in value)


def path(written: Written) -> str | None:
    """A URI, or a path, which is relative to the project."""
    found = text(written)
    if found is None or "://" in found or os.path.isabs(found):
        return found
    return os.path.normpath(os.path.join(written.project_dir, found))


def duration(default: int) -> Read:
    """Milliseconds."""

    def read(written: Written) -> int:
        try:
            return default if written.value is None else parse_duration(written.value)
        except ConfigError as error:
            where = f"source {written.source}: differential.{written.key}"
            raise ConfigError(f"{where}: {error.message}", error.remedy) from None

    return read


def duration_if_any(written: Written) -> int | None:
    """Milliseconds, more than none; NULL is none."""
    value = None if written.value is None else duration(0)(written)
    if value is not None and value <= 0:
        raise ConfigError(
            f"source {written.source}: differential.{written.key} is {written.value!r}",
            "Write a duration that is longer than nothing, such as '30 days'.",
        )
    return value


def whole_number(default: int) -> Read:
    """A number that is not negative."""

    def read(written: Written) -> int:
        value = default if written.value is None else written.value
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ConfigError(
                f"source {written.source}: differential.{written.key} is {value!r}",
                "Give a whole number that is not negative.",
            )
        return value

    return read


def choice(*allowed: str) -> Read:
    """One of these."""

    def read(written: Written) -> str:
        return chosen(written.source, written.key, written.value, allowed)

    return read


def chosen(source: str, key: str, value: Any, allowed: Sequence[str]) -> str:
    """The value. Raises ConfigError, with the nearest one, if it is not among those that are allowed."""
    if value in allowed:
        return str(value)
    raise ConfigError(
        f"source {source}: differential.{key} is {value!r}",
        f"{did_you_mean(value, allowed)}It may be {', '.join(allowed)}.",
    )


def did_you_mean(value: Any, known: Sequence[str]) -> str:
    """A hint at the nearest one, if any is near."""
    close = difflib.get_close_matches(str(value), known, 1)
    return f"Did you mean {close[0]}? " if close else ""
