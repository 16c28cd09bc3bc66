"""``make projects``: a dbt project with ``+materialized: differential`` everywhere, against its own ``table`` build.

``python -m tests.projects.run FOLDER --rounds 3 --seed 1 --rows 1000`` copies the project, makes every model
differential but ephemeral ones, loads its seeds, changes them at random, and runs dbt, round after round. Each round
every model is compared, both directions of EXCEPT ALL, with the table that dbt makes of it at the same time; in the end
also with the answer of Spark to the SQL that is stored. The exit code is 1 where one differs, 2 where fewer than half
of the models have a table to be compared with.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.projects.compare import determined, differences, rounded, table, text
from tests.projects.project import Project, Ran
from tests.projects.report import Report
from tests.projects.seeds import change, scale

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BESIDE = ("__table", "__again", "__once_more")
"""Suffixes of the schemas of tables: those to compare with, and two more of seeds in another order."""
_OTHERWISE = (
    {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.shuffle.partitions": "3"},
    {"spark.sql.join.preferSortMergeJoin": "false", "spark.sql.shuffle.partitions": "7"},
)
"""Settings by which Spark runs the two in other ways: rows come in other orders, whatever those of seeds are."""


@dataclass(frozen=True)
class Options:
    """``rows``: of the longest seed, where it has fewer. ``start``: the first round's time; each is ``step`` later."""

    rounds: int = 3
    seed: int = 1
    rows: int = 0
    threads: int = 2
    start: str = "2026-06-01 09:30:00"
    step: timedelta = timedelta(hours=31)
    schema: str = "dd"
    variables: tuple[tuple[str, Any], ...] = ()
    conf: tuple[tuple[str, str], ...] = ()


class Check:
    """One project, round after round."""

    def __init__(self, original: Path, folder: Path, options: Options, say: Callable[[str], None]) -> None:
        self._options, self._say = options, say
        self._rng = random.Random(options.seed)
        variables, conf = dict(options.variables), dict(options.conf)
        self._project = Project(original, folder, variables, options.threads, options.schema, conf)
        self._tables = [self._project.tables(suffix) for suffix in BESIDE]
        self._seeds = self._project.seeds()
        self.report = Report(self._project.name, self._project.models, self._project.removed)

    def run(self) -> Report:
        """All rounds."""
        scale(self._seeds, self._options.rows)
        for number in range(self._options.rounds + 1):
            self._round(number)
        self._verify()
        return self.report

    def _round(self, number: int) -> None:
        now = (datetime.fromisoformat(self._options.start) + number * self._options.step).isoformat(sep=" ")
        changed = 0
        for seed in self._seeds:
            if number and self._rng.random() < 0.7:
                changed += change(seed, self._rng)
            seed.write()
        self._project.load()
        by_table, built = self._project.run(self._tables[0], now)
        self.report.built(number, by_table, built)
        spent, ran = self._first(now) if not number else self._project.run(self._project.differential, now)
        self.report.ran(number, spent, ran)
        wrong = self._compare(number, now)
        told = f"{spent:.1f} s differential, {by_table:.1f} s as tables"
        self._say(f"round {number}: {changed} rows of seeds changed; {told}; {len(wrong)} models differ")

    def _first(self, now: str) -> tuple[float, list[Ran]]:
        """The first run. A model that is refused becomes a table, and what it kept from running is run."""
        seconds, ran = self._project.run(self._project.differential, now)
        done = {one.unique_id: one for one in ran}
        while refused := [one for one in done.values() if one.status == "error" and self.report.refuse(one)]:
            for one in refused:
                self._project.keep_as_table(one.unique_id)
            waiting = [one.unique_id for one in done.values() if one.status in ("error", "skipped")]
            more, ran = self._project.run(self._project.differential, now, waiting)
            seconds += more
            done |= {one.unique_id: one for one in ran}
        return seconds, list(done.values())

    def _compare(self, number: int, now: str) -> list[str]:
        """Models that differ from their table in what their SQL determines."""
        suspects = [name for name in self.report.comparable(number) if not self._is_exact(name)]
        open_ = [name for name in suspects if self._differs(name)]
        if open_:
            self._look_closer(open_, now)
        wrong = [name for name in open_ if self._differs(name)]
        for name in wrong:
            columns = self.report.determined.get(name)
            counts = differences(rounded(self._table(name)), rounded(self._found(name)), columns)
            self.report.differ(name, f"round {number}: {text(counts)}")
        return wrong

    def _is_exact(self, name: str) -> bool:
        answer, found = self._table(name), self._found(name)
        if name not in self.report.filled and not found.isEmpty():
            self.report.filled.add(name)
        if answer.dtypes != found.dtypes:
            if sorted(answer.dtypes) != sorted(found.dtypes) or not self._has_other_sql(name):
                self.report.differ(name, f"columns are {found.dtypes}, and the table's are {answer.dtypes}")
                return True
            self.report.reordered.add(name)
        return differences(answer, found) == (0, 0)

    def _has_other_sql(self, name: str) -> bool:
        """Whether the SQL of the model, or of one that it reads, is not that of the tables: Jinja may ask Spark."""
        built, table = self._project.differential.nodes, self._tables[0].nodes
        return any(
            built[one].compiled_code != table[one].compiled_code.replace(BESIDE[0], "")
            for one in self._with_parents([name])
        )

    def _differs(self, name: str) -> bool:
        """In the columns that its SQL determines, as far as is known, and to ten digits of doubles."""
        answer, found = rounded(self._table(name)), rounded(self._found(name))
        is_equal = differences(answer, found, self.report.determined.get(name)) == (0, 0)
        if is_equal:
            self.report.round(name)
        return not is_equal

    def _look_closer(self, names: Sequence[str], now: str) -> None:
        """Under ties Spark may give any of several answers: those to seeds in another order, and by other plans, show
        which columns."""
        for manifest, settings in zip(self._tables[1:], _OTHERWISE, strict=True):
            for seed in self._seeds:
                seed.write(self._rng.sample(seed.rows, len(seed.rows)))
            self._project.load()
            with self._set(settings):
                self._project.run(manifest, now, self._with_parents(names))
        for name in names:
            columns = determined([self._table(name, manifest) for manifest in self._tables])
            self.report.determine(name, columns, self._table(name).columns)

    @contextmanager
    def _set(self, settings: Mapping[str, str]) -> Iterator[None]:
        conf = self._spark().conf
        before = {name: conf.get(name) for name in settings}
        try:
            for name, value in settings.items():
                conf.set(name, value)
            yield
        finally:
            for name, value in before.items():
                conf.set(name, value)

    def _with_parents(self, names: Sequence[str]) -> list[str]:
        """The models among these nodes and all that they read."""
        seen: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name in self._project.written.nodes and name not in seen:
                seen.add(name)
                depends_on = self._project.written.nodes[name].depends_on
                pending += getattr(depends_on, "nodes", ())  # a seed reads no node
        return sorted(seen & set(self._project.models))

    def _verify(self) -> None:
        """Models that Spark answers in one way alone, by the engine's own comparison."""
        from dbt_incremental_dd.runtime.verify import verify_model

        for name in self.report.exact():
            node = self._project.differential.nodes[name]
            found = verify_model(self._spark(), self._project.storage(), f"{node.schema}.{node.alias}".lower())
            if not found.exact:
                self.report.differ(name, f"verify: {text((found.missing, found.unexpected))}")

    def _table(self, name: str, manifest: Any = None) -> DataFrame:
        return table(self._spark(), (manifest or self._tables[0]).nodes[name].relation_name)

    def _found(self, name: str) -> DataFrame:
        return table(self._spark(), self._project.differential.nodes[name].relation_name)

    @staticmethod
    def _spark() -> Any:
        from pyspark.sql import SparkSession

        return SparkSession.builder.getOrCreate()


def check(original: Path, folder: Path, options: Options, say: Callable[[str], None]) -> Report:
    """Runs a copy of the project, which is made in ``folder``, by these options."""
    return Check(original, folder, options, say).run()


def main() -> int:
    """0 where every model was exact in every round, and most could be compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path, help="the folder that has dbt_project.yml")
    parser.add_argument("--rounds", type=int, default=Options.rounds, help="rounds of changes after the first load")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of random changes")
    parser.add_argument("--rows", type=int, default=0, help="repeat what seeds hold until the longest has so many")
    parser.add_argument("--threads", type=int, default=Options.threads)
    parser.add_argument("--start", default=Options.start, help="the first round's time")
    parser.add_argument("--schema", default=Options.schema, help="the target's schema")
    parser.add_argument("--vars", type=json.loads, default={}, help="the project's vars, as JSON")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark's")
    parser.add_argument("--json", type=Path, help="writes what is known of each model there, too")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    options = Options(
        rounds=given.rounds,
        seed=given.seed,
        rows=given.rows,
        threads=given.threads,
        start=given.start,
        schema=given.schema,
        variables=tuple(given.vars.items()),
        conf=tuple(tuple(setting.split("=", 1)) for setting in given.conf),
    )
    with tempfile.TemporaryDirectory() as folder:
        report = check(given.project, Path(folder) / "project", options, lambda line: print(line, flush=True))
    print(report.text())
    if given.json:
        given.json.write_text(json.dumps(report.facts(), indent=1))
    if report.wrong:
        return 1
    return 2 if report.says_little else 0


if __name__ == "__main__":
    sys.exit(main())
