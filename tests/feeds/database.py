"""Tables of a database's server as sources, taken in by runs, compared with the server's own rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dbt_incremental_dd
from dbt_incremental_dd.core.manifest import SourceManifest
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.sources.config import SourceSpec, parse_source
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    pass


class DatabaseFeed(ABC):
    """A state root that follows tables of a database of its own."""

    connector: str
    schema: str
    options: Mapping[str, Any]

    def __init__(self, session: LazySession, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.storage = Storage(str(folder / "state"))
        self.told: list[str] = []

    @abstractmethod
    def actual(self, name: str, columns: str = "*") -> Counter[tuple[Any, ...]]:
        """The server's rows."""

    def spec(self, name: str, columns: Mapping[str, str] | None = None, **settings: Any) -> SourceSpec:
        """A table of the schema."""
        options = {**self.options, **settings.pop("options", {})}
        meta = {"connector": self.connector, "options": options, **settings}
        return parse_source(f"{self.schema}.{name}", f"`{self.schema}`.`{name}`", meta, columns or {}, "")

    def run(self, *specs: SourceSpec, expected: tuple[SourceSpec, ...] | None = None) -> dict[str, int]:
        """One run that takes in these; how many updates each has."""
        run = Run(self.session, self.storage, "run", None, self.told.append)
        run.scope.expect(lambda: specs if expected is None else expected)
        return {spec.name.split(".", 1)[1]: run.source(spec).rows for spec in specs}

    def rows(self, name: str) -> Counter[tuple[Any, ...]]:
        """What is stored of a table, as a multiset."""
        table = dbt_incremental_dd.open(self.storage.root)[f"{self.schema}.{name}"].as_of()
        names = [column for column in table.column_names if column != "dd_diff"]
        counts: Counter[tuple[Any, ...]] = Counter()
        for row in table.to_pylist():
            counts[tuple(plain(row[column]) for column in names)] += row["dd_diff"]
        return counts

    def check(self, *names: str, columns: str = "*") -> None:
        """What is stored is what the server has."""
        for name in names:
            stored, actual = self.rows(name), self.actual(name, columns)
            assert stored == actual, f"{name}: missing {actual - stored}, too many {stored - actual}"

    def progress(self, name: str) -> dict[str, Any]:
        """How far a source is."""
        place = self.storage.collection(f"{self.schema}.{name}")
        log = place.log()
        assert log is not None
        manifest = place.read_manifest(log.manifest)
        assert isinstance(manifest, SourceManifest)
        return dict(manifest.progress)


def plain(value: Any) -> Any:
    """A value that can be compared."""
    return repr(value + 0.0) if isinstance(value, float) else value
