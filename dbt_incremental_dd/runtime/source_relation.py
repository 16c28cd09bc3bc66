"""A source's relation in the catalog: a view of what was taken in, made when somebody first asks for it.

Most sources are read by differential models alone, which need no relation. So nothing is made in a run, and what was
made once is kept up from then on.
"""

from __future__ import annotations

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.description import NOTHING
from dbt_incremental_dd.runtime.relation import is_published, publish
from dbt_incremental_dd.runtime.relation_sql import no_rows_sql
from dbt_incremental_dd.runtime.shown import expect_published, was_published
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.intake import Intake
from dbt_incremental_dd.sources.record_schema import declared_row
from dbt_incremental_dd.trace.columns import columns_of
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.spark_reader import schema_of


def needs_relation(spec: SourceSpec) -> bool:
    """Whether the source is in no catalog by itself."""
    return not spec.in_catalog


def show_source(session: LazySession, storage: Storage, spec: SourceSpec, *, anew: bool) -> None:
    """Makes the relation: with the rows that were taken in, or, before the first intake, with the declared columns.

    Unless ``anew``, one that is there by now stays: others may read it, and Spark drops a view before it replaces it.
    Raises SourceError where nothing tells what its columns are.
    """
    place, spark = storage.collection(spec.name), session.spark
    with writing(place):
        if not anew and spark.catalog.tableExists(spec.relation):
            return
        log = place.log()
        is_stored = log is not None and log.manifest is not None
        if not is_stored and not spec.columns:
            raise SourceError(
                f"source {spec.name} was not taken in yet, and declares no columns",
                "Give its columns a `data_type`, or run a differential model that reads it first.",
            )
        schema, _, _ = spec.relation.rpartition(".")
        if schema:
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        if log is not None and is_stored:
            catalog, columns = Catalog(session), columns_of(place, log)
            publish(catalog, place, spec.relation, log, columns, anew=True, description=NOTHING)
            return
        row = declared_row(session, spec)
        assert row is not None
        spark.sql(f"CREATE OR REPLACE VIEW {spec.relation} AS {no_rows_sql(schema_of(row))}")
        Catalog(session).note(spec.relation, is_there=True)
        expect_published(place)


def follow_source(catalog: Catalog, storage: Storage, spec: SourceSpec, intake: Intake) -> None:
    """Makes the relation show the intake, if there is one."""
    place = storage.collection(spec.name)
    if not was_published(place) or is_published(place, spec.relation, intake.log, intake.schema, NOTHING):
        return
    with writing(place):
        publish(catalog, place, spec.relation, intake.log, intake.schema, anew=False, description=NOTHING)


def source_columns(session: LazySession, storage: Storage, spec: SourceSpec) -> Schema | None:
    """A source's columns, as stored, or else as declared; None where neither is known."""
    place = storage.collection(spec.name)
    log = place.log()
    if log is not None and log.manifest is not None:
        return columns_of(place, log)
    row = declared_row(session, spec)
    return None if row is None else schema_of(row)


def final_at(storage: Storage, name: str) -> Time | None:
    """The latest time at which a source is known in full; None where it was never taken in."""
    log = storage.collection(name).log()
    return None if log is None or log.manifest is None else log.frontiers.last
