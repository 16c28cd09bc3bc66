"""What a connector brings: records that have not been taken in yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.sources.exchange import Records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE = "dd_file"
"""STRING, the path of the file that a record is from."""
CORRUPT = "dd_corrupt"
"""STRING, the text of a record that does not fit the schema; NULL for one that does."""


@dataclass(frozen=True)
class Arrival:
    """New records (``whole``: all that there are), and the progress that is made by taking them in.

    ``records`` has the source's columns, and perhaps ``dd_file`` and ``dd_corrupt``. ``removed`` are records that
    are gone, where the connector can tell.
    """

    records: Records
    progress: Mapping[str, Any]
    whole: bool = False
    removed: DataFrame | None = None
    scratch: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
