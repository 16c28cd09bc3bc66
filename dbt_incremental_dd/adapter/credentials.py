"""The profile: ``type: differential``, everything else as dbt-spark's ``method: session``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.spark import SparkCredentials

DEFAULT_STATE_ROOT = ".dbt_incremental_dd"


@dataclass
class DifferentialCredentials(SparkCredentials):
    """``state_root``: where collections are stored, relative to the project; ``storage_options``: for delta-rs,
    from which what pyarrow and Spark need is derived; never shown."""

    state_root: str = DEFAULT_STATE_ROOT
    storage_options: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def __pre_deserialize__(cls, data: Any) -> Any:
        data = super().__pre_deserialize__(data)
        data.setdefault("method", "session")
        data.setdefault("host", "NA")
        return data

    @property
    def type(self) -> str:
        return "differential"

    def _connection_keys(self) -> tuple[str, ...]:
        return ("schema", "state_root")

    def root(self, project_dir: str) -> str:
        """The state root as an absolute path or a URI."""
        if "://" in self.state_root:
            return self.state_root.rstrip("/")
        return os.path.normpath(os.path.join(project_dir, os.path.expanduser(self.state_root)))
