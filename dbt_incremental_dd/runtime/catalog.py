"""The views that a metastore has, asked for once in a run: each question costs as much as a small Spark job."""

from __future__ import annotations

import threading

from pyspark.errors import AnalysisException
from sqlglot import exp

from dbt_incremental_dd.relation.lazy_session import LazySession


class Catalog:
    """Views by schema, as of when one of the schema was first asked for. Threads may share it."""

    def __init__(self, session: LazySession) -> None:
        self.session = session
        self._views: dict[str, frozenset[str]] = {}
        self._lock = threading.Lock()

    def has_view(self, relation: str) -> bool:
        """Whether there is a view of that name, ``schema.identifier`` as in SQL."""
        *schema, name = (part.name for part in exp.to_table(relation, dialect="spark").parts)
        where = ".".join(f"`{part.replace('`', '``')}`" for part in schema)
        with self._lock:
            if where not in self._views:
                self._views[where] = self._ask(where)
            return name.lower() in self._views[where]

    def has_table(self, relation: str) -> bool:
        """Whether there is a table, not a view, of that name. Asked each time."""
        return not self.has_view(relation) and self.session.spark.catalog.tableExists(relation)

    def _ask(self, schema: str) -> frozenset[str]:
        try:
            rows = self.session.spark.sql(f"SHOW VIEWS IN {schema}" if schema else "SHOW VIEWS").collect()
        except AnalysisException:  # there is no such schema
            return frozenset()
        return frozenset(row["viewName"].lower() for row in rows if not row["isTemporary"])
