"""What connectors to relations of the catalog have in common: their settings, and that only a poll finds changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.sources.setting import setting
from dbt_incremental_dd.sources.spec import FILE_FORMATS, SourceSpec, one_of
from dbt_incremental_dd.trace.layout import Storage


@dataclass(frozen=True, kw_only=True)
class CatalogSpec(SourceSpec):
    """``format`` is accepted and ignored: the catalog knows it."""

    reads: ClassVar[str] = "a relation of the catalog"
    in_catalog: ClassVar[bool] = True

    format: str | None = setting(one_of(*FILE_FORMATS))


def no_token(storage: Storage, spec: CatalogSpec) -> None:
    """A relation has no change token: without Spark nobody knows where it is stored."""


def no_interval(spec: CatalogSpec) -> float:
    """Seconds: there is no token to look at."""
    return 0.0
