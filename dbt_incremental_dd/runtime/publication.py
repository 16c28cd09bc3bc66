"""Makes the relations and tables that runs without a session have left to this one."""

from __future__ import annotations

from collections.abc import Callable

from dbt_incremental_dd.core.errors import CommitConflict
from dbt_incremental_dd.core.foreign import reason
from dbt_incremental_dd.relation.due import DueRelations, parts_of
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.relation import due_relation, publish
from dbt_incremental_dd.runtime.staging import make_staged
from dbt_incremental_dd.trace.columns import columns_of
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.spark_reader import quote_name


def publish_due(session: LazySession, storage: Storage, tell: Callable[[str], None]) -> None:
    """Call it with an open session. What cannot be made stays due; ``tell`` hears why."""
    due = session.memory.due
    if due is None:
        return
    due.read_again()
    catalog = Catalog(session)
    of_relations = {parts_of(due_relation(note)[0])[-2:-1] for note in due.notes.values()}
    of_relations |= {parts_of(name)[-2:-1] for name in due.tables}
    for schema in sorted(due.schemas | {schema for found in of_relations for schema in found}):
        session.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quote_name(schema)}")
        session.memory.keep_schema(schema)
        due.drop_schema(schema)
    for name, note in due.tables.items():
        try:
            make_staged(session.spark, storage, note)
        except Exception as error:
            tell(f"the table {name} is not made yet: {reason(error)}")
            continue
        due.drop_table(name, note)
        session.memory.keep_view(*name.rsplit(".", 1), is_there=False)
    for name, note in due.notes.items():
        try:
            _publish_one(catalog, storage, name, note, due)
        except CommitConflict:  # whoever writes it publishes it too
            continue
        except Exception as error:
            tell(f"the relation of {name} is not made yet: {reason(error)}")


def _publish_one(catalog: Catalog, storage: Storage, name: str, note: str, due: DueRelations) -> None:
    place = storage.collection(name)
    with writing(place, longest_wait=0.0):
        log = place.log()
        if log is None or log.manifest is None:  # it was removed
            due.drop(name)
            return
        relation, description = due_relation(note)
        publish(catalog, place, relation, log, columns_of(place, log), anew=True, description=description)
