"""A table gives its place to a differential model's view: it is kept aside until the view stands there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.runtime.catalog import Catalog


def aside_of(relation: str) -> str:
    """Where a table is kept: ``a.b`` gives ``a.b__dd_former``."""
    return f"{relation[:-1]}__dd_former`" if relation.endswith("`") else f"{relation}__dd_former"


@contextmanager
def table_aside(catalog: Catalog, relation: str) -> Iterator[None]:
    """Inside, the relation's name is free for a view; a table of that name is dropped after it.

    If the view cannot be made, the table gets its name back. If the process is ended in between, the next call
    finishes the swap.
    """
    aside = aside_of(relation)
    if catalog.has_table(relation):
        catalog.session.spark.sql(f"DROP TABLE IF EXISTS {aside}")
        catalog.session.spark.sql(f"ALTER TABLE {relation} RENAME TO {aside}")
        reached("table: aside")
    elif not catalog.has_table(aside):
        yield
        return
    try:
        yield
    except Exception:
        catalog.session.spark.sql(f"ALTER TABLE {aside} RENAME TO {relation}")
        raise
    reached("table: replaced")
    catalog.session.spark.sql(f"DROP TABLE {aside}")
