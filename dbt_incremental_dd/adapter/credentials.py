"""The profile: ``type: differential``, everything else as dbt-spark's ``method: session``."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt.adapters.spark import SparkCredentials
from dbt_common.exceptions import DbtRuntimeError

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.keep_runs import DEFAULT, kept_ms
from dbt_incremental_dd.core.keep_session import kept_seconds
from dbt_incremental_dd.core.method import require_method
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.observe.settings import observe_settings
from dbt_incremental_dd.trace.layout import DEFAULT_ROOT, Storage, open_storage, state_root_of

if TYPE_CHECKING:
    from dbt_incremental_dd.relation.lazy_session import LazySession

_OURS = (
    *("state_root", "storage_options", "server_side_parameters", "engine", "thresholds", "keep_session"),
    *("keep_runs", "observe"),
)


@dataclass
class DifferentialCredentials(SparkCredentials):
    """``state_root``: where collections are stored, relative to the project; ``storage_options``: for delta-rs,
    from which what pyarrow and Spark need is derived; never shown; ``engine``: ``spark`` for every delta, or ``auto``,
    by which small ones are computed on the driver; ``thresholds``: those that are not the engine's defaults;
    ``keep_session``: how long a local session stays for other commands, such as ``10 minutes``; not at all if empty;
    ``keep_runs``: how long the rows of ``dd_runs`` stay, or ``false``; ``observe``: settings of those who are told of
    runs, by observer."""

    state_root: str = DEFAULT_ROOT
    storage_options: dict[str, str] = field(default_factory=dict, repr=False)
    engine: str = "auto"
    thresholds: dict[str, Any] = field(default_factory=dict)
    keep_session: str = ""
    observe: dict[str, Any] = field(default_factory=dict, repr=False)
    keep_runs: bool | str = DEFAULT

    @classmethod
    def __pre_deserialize__(cls, data: Any) -> Any:
        data = super().__pre_deserialize__(data)
        data.setdefault("method", "session")
        data.setdefault("host", "NA")
        data["keep_session"] = str(data.get("keep_session") or "")
        data["observe"] = data.get("observe") or {}
        for key in data:
            close = difflib.get_close_matches(key, _OURS, 1, cutoff=0.8)
            if close and key not in _OURS:
                raise DbtRuntimeError(f"unknown setting {key}. Did you mean {close[0]}?")
        return data

    def __post_init__(self) -> None:
        try:
            require_method(self.method)
            Thresholds.of(self.thresholds, self.engine)
            kept_seconds(self.keep_session)
            observe_settings(self.observe)
            kept_ms(self.keep_runs)
        except ConfigError as error:
            raise DbtRuntimeError(str(error)) from error
        super().__post_init__()

    @property
    def type(self) -> str:
        return "differential"

    def _connection_keys(self) -> tuple[str, ...]:
        return ("schema", "state_root")

    def root(self, project_dir: str) -> str:
        """The state root as an absolute path or a URI."""
        return state_root_of(self.state_root, project_dir)

    def session(self, project_dir: str, tell: Callable[[str], None] = lambda line: None) -> LazySession:
        """The session, opened when it is first needed; ``tell`` hears by what."""
        from dbt_incremental_dd.runtime.session import lazy_session

        settings, keep = self.settings, kept_seconds(self.keep_session)
        return lazy_session(self.root(project_dir), settings, self.storage_options, tell, keep)

    @property
    def runs_kept(self) -> int:
        """For how many ms the rows stay that tell of runs; 0 if there are none."""
        return kept_ms(self.keep_runs)

    @property
    def settings(self) -> dict[str, str]:
        """Spark's, as text."""
        return {str(name): str(value) for name, value in self.server_side_parameters.items()}

    def storage(self, project_dir: str) -> Storage:
        """The state root. Raises ConfigError for a store on which commits are not safe."""
        return open_storage(self.root(project_dir), self.storage_options, Thresholds.of(self.thresholds, self.engine))
