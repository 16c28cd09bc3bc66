"""The adapter: translates between dbt's graph and the engine's requests, and its outcomes into dbt's responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary

from dbt.adapters.base import available
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.differential.connections import DifferentialConnectionManager, project_dir, storage_of
from dbt.adapters.differential.errors import dbt_errors
from dbt.adapters.differential.requests import model_request, read_sources, sources_of
from dbt.adapters.differential.responses import DifferentialResponse, PreviewResponse
from dbt.adapters.differential.runs import finish, run_of
from dbt.adapters.differential.seeds import is_loaded, mark_of, note_loaded, seed_column, stage_seed
from dbt.adapters.differential.source_relations import declared, missed, shows_no_files
from dbt.adapters.differential.warnings import warn_of_absent
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark import SparkAdapter, SparkColumn
from dbt_common.exceptions import DbtRuntimeError

from dbt_incremental_dd.core.foreign import reason
from dbt_incremental_dd.core.schema import Column
from dbt_incremental_dd.core.time import parse_time
from dbt_incremental_dd.frontend.relations import RelationName
from dbt_incremental_dd.logical.sql_types import described
from dbt_incremental_dd.runtime.driver_answer import driver_columns
from dbt_incremental_dd.runtime.grants import knows_grants
from dbt_incremental_dd.runtime.preview import Preview, preview, stored_columns
from dbt_incremental_dd.runtime.relation_sql import as_of_sql, changes_sql
from dbt_incremental_dd.runtime.release import release
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.shown_rows import shown_rows
from dbt_incremental_dd.runtime.source_relation import final_at, needs_relation, show_source, source_columns
from dbt_incremental_dd.runtime.staging import can_wait
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.graph import is_differential

logger = AdapterLogger("Differential")

_SEEDS_TYPES: WeakKeyDictionary[Any, dict[int, str | None]] = WeakKeyDictionary()


class DifferentialAdapter(SparkAdapter):
    """dbt-spark's adapter with the engine beside it."""

    ConnectionManager = DifferentialConnectionManager
    _capabilities = CapabilityDict(
        {**SparkAdapter._capabilities, Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full)}
    )

    def execute(self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None) -> Any:
        """As dbt-spark's; a source that is in no catalog gets a relation where the statement misses it."""
        shown: set[str] = set()
        while True:
            try:
                return super().execute(sql, auto_begin=auto_begin, fetch=fetch, limit=limit)
            except DbtRuntimeError as error:
                storage, folder = self._storage(), project_dir(self.config)
                spec = missed(self.get_macro_resolver(), storage, folder, str(error))
                if spec is None or spec.name in shown:
                    raise
                shown.add(spec.name)
                self._show(spec, anew=shows_no_files(str(error)))

    @classmethod
    def convert_agate_type(cls, agate_table: Any, col_idx: int) -> str | None:
        """As dbt's, but a column of a seed is looked at once: dbt-spark's macro asks for it with each value."""
        known = _SEEDS_TYPES.setdefault(agate_table, {})
        if col_idx not in known:
            known[col_idx] = super().convert_agate_type(agate_table, col_idx)
        return known[col_idx]

    def set_relations_cache(self, relation_configs: Any, clear: bool = False, required_schemas: Any = None) -> None:
        """As dbt-spark's, but a schema is looked at when one of its relations is asked for: differential models do
        not need it, and it would open a session."""
        if self.connections.session().is_open:
            super().set_relations_cache(relation_configs, clear, required_schemas)
        elif clear:
            self.cache.clear()

    @available
    def cache_added(self, relation: Any) -> str:
        """As dbt's; not in a schema that nobody has looked at yet, which would seem to hold nothing else then."""
        if relation is not None and (relation.database, relation.schema) not in self.cache:
            return ""
        added: str = super().cache_added(relation)
        return added

    def list_schemas(self, database: str) -> list[str]:
        """As dbt-spark's, or as a former session has found them where nobody has opened the catalog since."""
        session = self.connections.session()
        known = () if session.is_open else session.memory.schemas
        if known:
            return list(known)
        found: list[str] = super().list_schemas(database)
        session.memory.keep_schemas(found)
        return found

    def create_schema(self, relation: Any) -> None:
        """As dbt-spark's; the next session makes it where none is open yet and nobody else reads the catalog."""
        session = self.connections.session()
        due = session.memory.due
        if due is not None and not session.is_open:
            due.keep_schema(relation.schema)
            return
        super().create_schema(relation)
        session.memory.keep_schema(relation.schema)

    def get_relation(self, database: str, schema: str, identifier: str) -> Any:
        """As dbt-spark's, or as it is known without a session; a source that is in no catalog gets a relation."""
        session = self.connections.session()
        kind = None if session.is_open else session.memory.relation_type(schema.lower(), identifier.lower())
        if kind:
            return self.Relation.create(schema=schema, identifier=identifier, type=kind)
        found = super().get_relation(database, schema, identifier) if kind is None else None
        if found is not None:
            return found
        spec = self.declared_source(schema, identifier)
        if spec is None:
            return None
        self._show(spec, anew=False)
        relation = self.Relation.create(schema=schema, identifier=identifier, type="view")
        self.cache_added(relation)
        return relation

    def _get_one_catalog(self, information_schema: Any, schemas: Any, used_schemas: Any) -> Any:
        """As dbt-spark's, of a schema whose sources have relations."""
        for schema in schemas:
            for spec in declared(self.get_macro_resolver(), schema, project_dir(self.config)):
                try:
                    self._show(spec, anew=True)
                except DbtRuntimeError as error:
                    logger.warning(str(error))
                self.cache.drop_schema(None, schema)
        return super()._get_one_catalog(information_schema, schemas, used_schemas)

    def calculate_freshness_from_metadata(self, source: Any, macro_resolver: Any = None) -> Any:
        """When a source was last known in full: its frontier. Raises DbtRuntimeError for a source that no differential
        model reads."""
        final = final_at(self._storage(), _collection(source))
        if final is None and self.declared_source(source.schema, source.identifier) is None:
            raise DbtRuntimeError(
                f"source {_collection(source)}: there is no loaded_at_field, and nothing was taken in of it\n"
                "  Set loaded_at_field, or run a differential model that reads it."
            )
        loaded = None if final is None else datetime.fromtimestamp(final / 1000, UTC)
        return None, self._create_freshness_response(loaded, datetime.now(UTC))

    def declared_source(self, schema: str, identifier: str) -> SourceSpec | None:
        """The source of that name that is in no catalog by itself. Raises DbtRuntimeError for wrong settings."""
        manifest, folder = self.get_macro_resolver(), project_dir(self.config)
        with dbt_errors():
            return next(declared(manifest, schema, folder, identifier), None)

    def _show(self, spec: SourceSpec, *, anew: bool) -> None:
        with dbt_errors():
            show_source(self.connections.session(), self._storage(), spec, anew=anew)

    @available
    def differential_run(
        self,
        model: Mapping[str, Any],
        relation: str,
        sql: str,
        graph: Mapping[str, Any],
        dd_time: Any = None,
        selected: Sequence[str] = (),
    ) -> DifferentialResponse:
        """Brings one model up to date; ``selected``: unique ids of all that dbt runs. Raises DbtRuntimeError with what
        is wrong and what to do."""
        folder = project_dir(self.config)
        with dbt_errors():
            request = model_request(model, relation, sql, graph=graph, config=self.config, folder=folder)
            run = self._run(dd_time)
            run.scope.expect(lambda: read_sources(graph, selected, folder))
            outcome = run.model(request)
            warn_of_absent(self._storage(), request)
            return DifferentialResponse.of(outcome)

    @available
    def differential_keeps(self, node: Mapping[str, Any]) -> bool:
        """Whether a model or snapshot is kept up to date here; others are dbt-spark's."""
        return is_differential(node)

    @available
    def differential_is_view(self, relation: str, dd_time: Any = None) -> bool:
        """Whether the relation is there, as a view. Raises DbtRuntimeError where the run cannot begin."""
        with dbt_errors():
            return self._run(dd_time).catalog.has_view(relation)

    @available
    def differential_preview(
        self, model: Mapping[str, Any], relation: str, sql: str, graph: Mapping[str, Any]
    ) -> Preview:
        """What the model would be; reads and stores nothing."""
        with dbt_errors():
            request = model_request(
                model, relation, sql, graph=graph, config=self.config, folder=project_dir(self.config)
            )
            return preview(self.connections.session().spark, self._storage(), request)

    @available
    def differential_previewed(self, found: Preview) -> PreviewResponse:
        """The response for a model that was compiled alone."""
        return PreviewResponse(_message=found.message, fallbacks=list(found.fallbacks))

    @available
    def differential_require_grants(self, relation: str) -> None:
        """Raises DbtRuntimeError where no catalog of the session can know grants."""
        if not knows_grants(self.connections.session().spark):
            raise DbtRuntimeError(
                f"{relation}: grants are set, but this Spark has no extension that knows GRANT\n"
                "  Remove `grants`, or run on a Spark whose catalog has them."
            )

    @available
    def differential_seed_mark(self, seed: Mapping[str, Any]) -> str:
        """Tells apart what would be loaded, by the seed's settings and its file as it is now."""
        return mark_of(self.config, seed)

    @available
    def differential_seed_is_loaded(self, relation: Any, mark: str) -> bool:
        """Whether loading the seed of that mark would change nothing."""
        return is_loaded(self.connections.session(), self._storage(), relation, mark)

    @available
    def differential_seed_can_be_staged(self, relation: Any) -> bool:
        """Whether the seed's table may be made of rows that are computed here, now or by the next session."""
        if can_wait(self.connections.session(), relation.render()):
            return True
        old = self.get_relation(relation.database, relation.schema, relation.identifier)
        return old is None or bool(old.is_table)

    @available
    def differential_stage_seed(
        self, relation: Any, table: Any, columns: Sequence[tuple[str, str, str]], clauses: str, mark: str
    ) -> bool:
        """Stores the seed's rows, and makes its table of them or leaves it to the next session; False where Spark has
        to load it. Raises DbtRuntimeError where Spark cannot make the table.

        ``table``: agate's; ``columns``: of each its name, also as SQL has it, and its type; ``clauses``: what follows
        them in the statement that makes the table.
        """
        made = [seed_column(*column, (row[at] for row in table.rows)) for at, column in enumerate(columns)]
        found = [column for column in made if column is not None]
        if len(found) < len(columns):
            return False
        session, storage = self.connections.session(), self._storage()
        try:
            return stage_seed(session, storage, relation.render(), found, clauses=clauses, mark=mark)
        except DbtRuntimeError:
            raise
        except Exception as error:
            raise DbtRuntimeError(f"{relation}: Spark cannot make the seed's table: {reason(error)}") from error

    @available
    def differential_seed_loaded(self, relation: Any, mark: str) -> None:
        """Notes that the seed of that mark has just been loaded."""
        note_loaded(self.connections.session(), self._storage(), relation, mark)

    def post_model_hook(self, config: Any, context: Any) -> None:
        """A model that was differential and is something else now leaves nothing of it in the catalog."""
        super().post_model_hook(config, context)
        node = getattr(config, "model", None)
        if node is None or is_differential({"config": config}) or config.get("materialized") == "ephemeral":
            return
        relation = self.Relation.create(database=node.database, schema=node.schema, identifier=node.alias)
        with dbt_errors():
            release(self.connections.session(), self._storage(), _collection(relation), relation.render())

    def get_columns_in_relation(self, relation: Any) -> Any:
        """As dbt-spark's, or as they are known without a session; of a source that is in no catalog, the columns that
        were taken in or are declared."""
        session, storage = self.connections.session(), self._storage()
        if not session.is_open and relation.schema:
            name = RelationName((relation.schema, relation.identifier))
            with dbt_errors():
                shown = shown_rows(session, storage, name, self.declared_source)
            if shown is not None:
                return _columns(shown.schema, relation)
        try:
            found = super().get_columns_in_relation(relation)
        except DbtRuntimeError:
            found = []
        if found:
            return found
        spec = self.declared_source(relation.schema, relation.identifier)
        with dbt_errors():
            stored = stored_columns(storage, _collection(relation)) if spec is None else None
            schema = stored if spec is None else source_columns(session, storage, spec)
        return _columns(schema or (), relation)

    @available
    def differential_query_columns(self, sql: str) -> list[SparkColumn] | None:
        """The columns of a query that is answered without a session; None of any other."""
        found = driver_columns(self.connections.session(), self._storage(), sql, self.declared_source)
        return None if found is None else _columns(found)

    @available
    def differential_take_in(
        self,
        node: Mapping[str, Any],
        graph: Mapping[str, Any],
        dd_time: Any = None,
        selected: Sequence[str] = (),
    ) -> None:
        """What a test reads of sources that are in no catalog by themselves is taken in. Raises DbtRuntimeError with
        what is wrong and what to do."""
        folder = project_dir(self.config)
        with dbt_errors():
            specs = [spec for spec in sources_of(node, graph, folder) if needs_relation(spec)]
            if not specs:
                return
            run = self._run(dd_time)
            run.scope.expect(lambda: read_sources(graph, selected, folder))
            for spec in specs:
                run.source(spec)

    @available
    def differential_now(self, dd_time: Any = None) -> str:
        """The run's time, as a SQL expression."""
        return f"timestamp_millis({self._run(dd_time).time}L)"

    @available
    def differential_as_of(self, relation: Any, time: Any) -> str:
        """A query for a collection's contents as of a time."""
        with dbt_errors():
            return as_of_sql(self._storage(), _collection(relation), parse_time(time))

    @available
    def differential_changes(self, relation: Any, after: Any, up_to: Any) -> str:
        """A query for a collection's updates between two times."""
        with dbt_errors():
            return changes_sql(self._storage(), _collection(relation), parse_time(after), parse_time(up_to))

    def _storage(self) -> Any:
        return storage_of(self.config.credentials, project_dir(self.config))

    def cleanup_connections(self) -> None:
        """At the end of an invocation: what is on its way to object storage arrives, or dbt tells that it has not."""
        super().cleanup_connections()
        with dbt_errors():
            finish()

    def _run(self, dd_time: Any) -> Run:
        return run_of(self.config, self._storage(), self.connections.session, dd_time)


def _columns(schema: Iterable[Column], of: Any = None) -> list[SparkColumn]:
    """As dbt-spark has the columns ``of`` a relation."""
    return [
        SparkColumn(
            table_schema=getattr(of, "schema", None),
            table_name=getattr(of, "identifier", None),
            column=column.name,
            dtype=described(column.type),
            table_database=None,
            table_type=None,
            column_index=number,
        )
        for number, column in enumerate(schema)
    ]


def _collection(relation: Any) -> str:
    return f"{relation.schema}.{relation.identifier}".lower()
