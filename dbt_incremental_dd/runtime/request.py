"""What a caller (the dbt adapter) asks of a run, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.manifest import DEFAULT_RETAIN
from dbt_incremental_dd.core.profile import Profile
from dbt_incremental_dd.core.reads import Reads
from dbt_incremental_dd.core.target_lag import TargetLag
from dbt_incremental_dd.core.time import Time, format_time
from dbt_incremental_dd.frontend.parsed import ParsedQuery, parsed
from dbt_incremental_dd.frontend.relations import RelationName
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.runtime.adopt import Adopt
from dbt_incremental_dd.runtime.contract import Contract
from dbt_incremental_dd.runtime.description import NOTHING, Description
from dbt_incremental_dd.sources.config import SourceSpec


@dataclass(frozen=True)
class ModelConfig:
    """A model's own settings. ``retain_history`` in ms; ``arranged_by`` lists of column names.

    ``strategy``: what is quickest, or a delta wherever there can be one. ``columns``: whether they may be others than
    those that are stored; they may not, or stored ones must stay. ``recursion_limit``: iterations after which a
    recursion is taken to have no end. ``history``: what is stored is the history of the query's rows. ``output``:
    the format of the open table that is kept beside; empty for none. ``target_lag`` is no part of the model's
    fingerprint: changing it rebuilds nothing. ``adopt``: where the rows of a model that is new come from, in place of
    its query.
    """

    retain_history: int = DEFAULT_RETAIN
    fallback: Literal["recompute", "error"] = "recompute"
    strategy: Literal["auto", "delta"] = "auto"
    arranged_by: tuple[tuple[str, ...], ...] = ()
    columns: Literal["any", "fixed", "kept"] = "any"
    recursion_limit: int = 1_000
    contract: Contract | None = None
    description: Description = NOTHING
    history: History | None = None
    output: str = ""
    target_lag: TargetLag | None = None
    adopt: Adopt | None = None

    @property
    def history_settings(self) -> Mapping[str, Any]:
        """The history's settings as manifests have them; empty without one."""
        return {} if self.history is None else self.history.to_json()


@dataclass(frozen=True)
class ModelRequest:
    """Bring one model up to date.

    ``name`` is the collection (``schema.identifier``, lower case), ``relation`` the identifier to use in SQL.
    ``inputs`` says for a relation key (as ``ParsedQuery.relations`` has it) whether it is a differential model
    (``"model"``) or how it is read as a source; a relation that is not in it is read as a ``snapshot`` source.
    """

    name: str
    relation: str
    sql: str
    config: ModelConfig
    inputs: Mapping[str, SourceSpec | Literal["model"]] = field(default_factory=dict)
    full_refresh: bool = False
    unique_id: str = ""

    @property
    def query(self) -> ParsedQuery:
        """The SQL as a query."""
        return parsed(self.sql)

    @property
    def relations(self) -> tuple[RelationName, ...]:
        """What the SQL reads. Raises ConfigError where that is the model itself."""
        found = self.query.relations
        own = [one.key for one in found if one.key in (self.name, f"{self.name}__changes")]
        if own:
            raise ConfigError(
                f"{self.name}: its SQL reads the model itself ({{{{ this }}}}, or {own[0]})",
                "Write the whole query, as for a table: what has changed is worked out from it. Rows that lead to "
                "further ones take WITH RECURSIVE.",
            )
        return found


Strategy = Literal["initial", "adopt", "delta", "rebuild", "recompute", "skip"]


@dataclass(frozen=True)
class Outcome:
    """What a model's run did. Rows are counted with their multiplicity; ``updates`` are those of the output that were
    written. ``seconds`` is wall time; ``why`` it was built anew; ``reads``: of stored files, intakes left out;
    ``profile``: what took the time. ``input_lag``: by how many ms the moment that it shows is behind that of its input
    that is furthest ahead. ``bytes_written``: of the output's files, states left out."""

    name: str
    strategy: Strategy
    as_of: Time
    rows_added: int = 0
    rows_removed: int = 0
    input_rows: int = 0
    seconds: float = 0.0
    fallbacks: tuple[str, ...] = ()
    held_back_by: str = ""
    why: str = ""
    notes: tuple[str, ...] = ()
    reads: Reads = field(default_factory=Reads)
    bytes_written: int = 0
    profile: Profile = field(default_factory=Profile)
    updates: int = 0
    input_lag: int = 0

    @property
    def message(self) -> str:
        """``+12 -7 at 2013-06-01 00:00:00 in 0.8s``, with what else a user should know."""
        parts = [f"+{self.rows_added} -{self.rows_removed} at {format_time(self.as_of)} in {self.seconds:.1f}s"]
        if self.strategy == "skip":
            parts = [f"unchanged at {format_time(self.as_of)}"]
        if self.strategy == "initial":
            parts.append("initial")
        if self.strategy == "adopt":
            parts.append(self.why)
        if self.strategy == "rebuild":
            parts.append(f"rebuild: {self.why}")
        if self.strategy == "recompute":
            parts.append("recomputed: quicker than a delta")
        if self.held_back_by:
            parts.append(f"held back by {self.held_back_by}")
        parts += [f"recomputed: {reason}" for reason in self.fallbacks]
        return "; ".join([*parts, *self.notes])


Report = Callable[[str], None]
"""Takes a line of progress for the user's log."""
