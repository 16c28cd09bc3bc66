"""What a kind of object store has to say of itself. Options have delta-rs's names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol


class Store(Protocol):
    """One kind of store."""

    @property
    def schemes(self) -> tuple[str, ...]:
        """Of its URIs."""

    @property
    def package(self) -> str:
        """Hadoop's for Spark."""

    @property
    def missing(self) -> tuple[str, ...]:
        """What Spark's error has where the package is missing."""

    def canonical(self, options: Mapping[str, str]) -> dict[str, str]:
        """The options under canonical names, completed by environment variables."""

    def hadoop(self, uri: str, options: Mapping[str, str]) -> dict[str, str]:
        """Hadoop's settings for a URI that correspond to the canonical options."""

    def spark_uri(self, uri: str) -> str:
        """The URI as Spark knows it."""

    def refused(self, uri: str, options: Mapping[str, str]) -> tuple[str, str] | None:
        """What of the canonical options is not safe, or does not work, and what to do; None if nothing is known."""


def completed(options: Mapping[str, str], prefix: str, others: Mapping[str, str]) -> dict[str, str]:
    """The options in upper case and with the store's prefix, ``others`` renamed, and the environment's variables of
    that prefix where there is no option."""
    found: dict[str, str] = {}
    for source in (os.environ, options):
        for name, value in source.items():
            upper = name.upper()
            upper = upper if upper.startswith(prefix) or source is os.environ else f"{prefix}{upper}"
            if upper.startswith(prefix):
                found[others.get(upper, upper)] = str(value)
    return found


def is_true(value: str | None) -> bool:
    """As delta-rs reads it."""
    return str(value).lower() in ("1", "true", "yes", "on", "t", "y", "ok")
