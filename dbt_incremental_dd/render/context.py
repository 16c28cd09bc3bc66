"""What rendering one model's run needs: a session, the interval, inputs' logs, and the operators' own traces."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.manifest import UsedArrangement
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.relation.keys import KeyCache
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.render.inner import InnerTraces
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log, total_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class InputInterval:
    """A collection that the plan reads: its log, its visible schema, and the updates that are new: ``(t0, t1]``."""

    log: Log
    schema: Schema
    t0: Time
    t1: Time

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        """Those that may hold new updates."""
        return between(self.log.files, self.t0, self.t1)

    @property
    def changed(self) -> int:
        """The number of new updates."""
        return total_rows(self.new_files)


@dataclass
class Context:
    """One model between ``t0`` (BEGINNING where it is built anew) and ``t1``.

    These are the times that its contents show; each of ``inputs`` has an interval of its own, and what the run stores
    is stamped ``at``. ``output``: the model's own log.
    """

    workspace: Workspace
    t0: Time
    t1: Time
    at: Time
    inputs: Mapping[str, InputInterval]
    output: tuple[Log, Schema] | None
    inner: InnerTraces
    report: Callable[[str], None]
    former: KeyCache = field(default_factory=KeyCache)
    """What the output held of keys when the run began."""
    recursion_limit: int = 1_000
    """Iterations after which a recursion is taken to have no end."""
    allowance: float = math.inf
    """Seconds after which a recursion's delta is given up, because a build would have been faster."""
    once_seconds: float = 0.0
    """Of the run's, what later ones need not spend again."""
    arrangements: tuple[UsedArrangement, ...] = ()
    """Of its inputs, those that the model uses; the run brings them up to date."""

    @property
    def from_nothing(self) -> bool:
        """Whether the old contents of everything are empty."""
        return self.t0 == BEGINNING

    @property
    def spark(self) -> SparkSession:
        """The run's session."""
        return self.workspace.spark

    @property
    def thresholds(self) -> Thresholds:
        """How much is worth doing on the driver."""
        return self.workspace.thresholds

    @property
    def storage(self) -> Storage:
        """Where the collections are."""
        return self.workspace.storage
