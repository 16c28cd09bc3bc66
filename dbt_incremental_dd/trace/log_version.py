"""What one version of a trace's log says: the files of its updates, and its frontiers."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.frontier import Frontiers
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.trace.commit import MANIFEST, SINCE, UPPER
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.tiers import mergeable


class LogVersion:
    """A version, as it was read or committed. It does not change."""

    def __init__(
        self,
        name: str,
        uri: str,
        *,
        version: int,
        schema: Schema,
        files: tuple[DataFile, ...],
        moved: Mapping[str, int | None],
    ) -> None:
        self.name = name
        self.uri = uri
        self.version = version
        """The Delta table's version."""
        self.schema = schema
        """All stored columns, ``dd_time`` and diffs included."""
        self.files = files
        """All live files, oldest updates first."""
        self.moved = moved
        """The versions of its transactions."""
        self.frontiers = Frontiers(since=moved[SINCE] or 0, upper=moved[UPPER] or 0)
        """``since`` and ``upper`` as of this version."""
        self.manifest = moved[MANIFEST]
        """The number of the manifest that belongs to this version."""

    def summands(self, t: Time, first: Time | None = None) -> tuple[DataFile, ...]:
        """The files whose updates up to ``t`` add up to the contents as of ``t``, without those of which everything has
        been retracted by then, and the retractions. ``first``: an earlier time for which the same files are to do."""
        found, base = between(self.files, BEGINNING, t), self._base(t if first is None else first)
        return tuple(file for file in found if file.first > base or (file.first == base and not file.retracts_all))

    def _base(self, t: Time) -> Time:
        """The latest time up to ``t`` at which all that was there has been retracted."""
        return max((file.first for file in self.files if file.retracts_all and file.first <= t), default=BEGINNING)

    def mergeable(self) -> tuple[DataFile, ...]:
        """Small files that may be merged into one that keeps their times: those after ``since``, and after the time at
        which everything was retracted."""
        kept = max(self.frontiers.since, self._base(self.frontiers.last))
        return mergeable(file for file in self.files if file.first > kept)
