"""A model that stores the history of its query's rows in their place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dbt_incremental_dd.core.errors import ConfigError, StateError
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.history.intervals import intervals
from dbt_incremental_dd.history.stored import StoredHistory, current_rows
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.relation.stored import read
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.render.inner import orderable
from dbt_incremental_dd.runtime.output import OutputDelta, schema_with_diff, stored_rows
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.runtime.strategy import StoredModel
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.damage import damage
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log


@dataclass(frozen=True)
class KeptHistory:
    """One model's history: its settings, the query's columns, and those of the history."""

    model: str
    history: History
    query: Schema

    @staticmethod
    def of(model: str, history: History, query: Schema) -> KeptHistory:
        """Raises ConfigError where the settings do not fit the query."""
        return KeptHistory(model, history.bound(query, model), query)

    @property
    def schema(self) -> Schema:
        """What is stored. Raises ConfigError where a column is there twice."""
        return self.history.schema(self.query, self.model)

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """The columns by which versions are looked for, as far as files can be sorted by them."""
        wanted = self.history.key or self.query.names
        return tuple(name for name in wanted if orderable(self.query, (name,)))[: None if self.history.key else 1]

    def require_continued(self, manifest: ModelManifest, log: Log | None) -> None:
        """Raises ConfigError where a column would be lost of what is stored."""
        if log is None or not manifest.history:
            return
        stored, wanted = visible_schema(manifest, log), self.schema
        for column in stored:
            found = wanted.find(column.name)
            if found is None or found.type != column.type:
                change = "is gone" if found is None else f"would be {found.type} in place of {column.type}"
                raise ConfigError(
                    f"{self.model}: its column {column.name} {change}, and its history has it",
                    "Keep it in the query, if only as a NULL of that type, or begin another model.",
                )

    def current(self, context: Context, beside: Relation | None) -> Relation | None:
        """The query's rows that are valid now, as far as they are known."""
        rows = stored_rows(context, beside, self.schema)
        return None if rows is None else current_rows(self.history, rows, self.query.names)

    def delta(self, context: Context, change: Relation | None, *, at: Time, continues: bool) -> OutputDelta:
        """The history's delta for the query's; ``continues``: one is stored. Raises QueryError for rows that can be no
        versions."""
        log = context.output[0] if context.output is not None and continues else None
        stored = None if log is None or not log.files else StoredHistory(log, self.schema)
        made = intervals(self.history, change, stored, at=at, model=self.model)
        return OutputDelta(None if made is None else made.columns(self.schema.names).consolidate().localized())

    def widened(self, context: Context, delta: OutputDelta) -> OutputDelta:
        """The whole history in its new columns, those that were not there NULL, with the delta."""
        assert context.output is not None
        log, _ = context.output
        files, columns = log.summands(log.frontiers.last), schema_with_diff(self.schema)
        before = read(context.workspace, log.uri, files, columns, most=0)
        whole = plus([before.consolidate(), delta.change])
        return OutputDelta(None if whole is None else replace(whole.consolidate(), positive=True))


def stored_history(name: str, manifest: ModelManifest) -> History | None:
    """The history that the model's rows are; None if they are its query's. Raises StateError where the stored settings
    are none: anybody who can write to the state root may have written them."""
    if not manifest.history:
        return None
    try:
        return History.from_json(manifest.history)
    except ValueError as error:
        raise StateError(
            f"what is stored of {name} is damaged: {error}", "Run the model: its settings are stored anew."
        ) from error


def require_kept(request: ModelRequest, current: StoredModel) -> None:
    """Raises ConfigError where the model would drop the history that is stored of it, and nobody has asked for that."""
    if current.manifest.history and request.config.history is None and not request.full_refresh:
        raise ConfigError(
            f"{request.name} is stored as a history, and its config has none any more",
            "Set `history` again, or drop what is stored of it by --full-refresh.",
        )


def require_undamaged(storage: Storage, current: StoredModel) -> None:
    """Raises StateError where a file of the history is not as it was written: no query gives its rows again."""
    damaged = damage(storage, current.log, contents=True) if current.log is not None else None
    if damaged is not None:
        raise StateError(
            f"the history of {current.place.name} is damaged: {damaged}",
            f"Restore the file from a backup. To begin a new history, remove {current.place.uri}.",
        )
