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
        schema, name = _parts(relation)
        with self._lock:
            if schema not in self._views:
                known = None if self.session.is_open else self.session.memory.views(schema)
                self._views[schema] = self._ask(schema) if known is None else known
            return name in self._views[schema]

    def note(self, relation: str, *, is_there: bool) -> None:
        """The view of that name was made, or was dropped."""
        schema, name = _parts(relation)
        with self._lock:
            if schema in self._views:
                self._views[schema] = self._views[schema] | {name} if is_there else self._views[schema] - {name}
            self.session.memory.keep_view(schema, name, is_there=is_there)

    def has_table(self, relation: str) -> bool:
        """Whether there is a table, not a view, of that name. Asked each time."""
        return not self.has_view(relation) and self.session.spark.catalog.tableExists(relation)

    def _ask(self, schema: str) -> frozenset[str]:
        try:
            rows = self.session.spark.sql(f"SHOW VIEWS IN {schema}" if schema else "SHOW VIEWS").collect()
            found = frozenset(row["viewName"].lower() for row in rows if not row["isTemporary"])
        except AnalysisException:  # there is no such schema
            found = frozenset()
        self.session.memory.keep_views(schema, found)
        return found


def _parts(relation: str) -> tuple[str, str]:
    """A relation's schema, quoted as in SQL, and its own name in lower case."""
    *schema, name = (part.name for part in exp.to_table(relation, dialect="spark").parts)
    return ".".join(f"`{part.replace('`', '``')}`" for part in schema), name.lower()
