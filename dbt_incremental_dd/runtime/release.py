"""A differential model becomes a table, a view or anything else: what showed it leaves the catalog.

What is stored of it stays, so that it can become differential again; ``dbt-dd vacuum`` reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.relation import changes_relation, publish
from dbt_incremental_dd.runtime.shown import forget_published, was_published
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def release(session: LazySession, storage: Storage, name: str, relation: str) -> None:
    """Call it after a run of a model that is not differential. Reads one small file if it never was.

    ``name`` is the collection, ``relation`` its identifier in SQL. If another relation stands in the model's place,
    ``<model>__changes`` is dropped. If none does, because making it failed, the model's own view is made again.
    """
    place = storage.collection(name)
    if not was_published(place):
        return
    changes = changes_relation(relation)
    spark = session.spark
    standing = _view_text(spark, relation)
    if standing is None:
        log = place.log()
        manifest = place.read_manifest(log.manifest) if log is not None else None
        if log is not None and isinstance(manifest, ModelManifest):
            publish(Catalog(session), place, relation, log, visible_schema(manifest, log), anew=True)
    elif changes not in standing:
        spark.sql(f"DROP VIEW IF EXISTS {changes}")
        Catalog(session).note(changes, is_there=False)
        reached("changes: dropped")
        forget_published(place)


def _view_text(spark: SparkSession, relation: str) -> str | None:
    """The text of the view; empty if it is a table, None if there is no such relation."""
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {relation}").collect()
    except AnalysisException:
        return None
    return next((str(row["data_type"]) for row in rows if row["col_name"] == "View Text"), "")
