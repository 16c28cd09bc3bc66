"""Runs that need no Spark session start no JVM: there is no Java where they run."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.runtime.verify import verify
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.project import Project
from tests.fork_server import fork_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DBT = str(Path(sys.executable).parent / "dbt")
_JAVA = f"{os.environ['JAVA_HOME']}/bin/java" if os.environ.get("JAVA_HOME") else shutil.which("java")
SOURCES = """
version: 2
sources:
  - name: shop
    tables:
      - name: orders
        columns:
          - {name: id, data_type: int}
          - {name: customer, data_type: string}
          - {name: amount, data_type: "decimal(12,2)"}
          - {name: day, data_type: date}
        config:
          meta: {differential: {envelope: append, path: orders, format: csv, options: {header: true}, event_time: day}}
      - name: customers
        columns:
          - {name: name, data_type: string}
          - {name: region, data_type: int}
          - {name: since, data_type: timestamp}
          - {name: credit, data_type: "decimal(9,2)"}
          - {name: gone, data_type: boolean}
        config:
          meta: {differential: {envelope: upsert, key: name, deleted_when: gone, path: customers, format: json}}
      - name: events
        columns: [{name: id, data_type: bigint}, {name: price, data_type: "decimal(9,2)"}, {name: kind, data_type: string}]
        config:
          meta: {differential: {envelope: debezium, key: id, path: events, format: json}}
"""
MODELS = {
    "paid": """select o.customer, r.title, count(*) as orders, sum(o.amount) as amount, max(o.amount) as most,
        avg(o.amount) as mean, min(c.since) as since, sum(c.credit) as credit
        from {{ source('shop', 'orders') }} o join {{ source('shop', 'customers') }} c on c.name = o.customer
        left join {{ ref('regions') }} r on r.region = c.region group by all""",
    "large": "select *, case when amount > 5.00 then 'large' else 'small' end as size from {{ source('shop', 'orders') }}",
    "best": """select customer, amount, place from (select customer, amount,
        row_number() over (partition by title order by amount desc, customer) as place from {{ ref('paid') }})
        where place <= 2""",
    "prices": "select kind, sum(price) as price, count(distinct id) as n from {{ source('shop', 'events') }} group by kind",
    "pairs": """select a.customer, b.customer as other from {{ ref('best') }} a join {{ ref('best') }} b
        on a.amount < b.amount""",
    "odd": "select customer from {{ ref('paid') }} except select kind from {{ ref('prices') }} order by 1 limit 5",
}
RECENT = """select name, datediff(current_date(), cast(since as date)) > 9 as is_old
        from {{ source('shop', 'customers') }} where since > current_timestamp() - interval 5000 days"""
"""It reads the clock: its first run asks Spark for types, later ones for nothing."""


class Shop:
    """A project, its files, and dbt in processes of its own."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        self.folder = folder
        self._rng = random.Random(5)
        self._round = 0
        self._lsn = 0
        self._events: dict[int, dict[str, Any]] = {}
        self.models = dict(MODELS)
        self.project.write("models/sources.yml", SOURCES)
        self.project.write("seeds/regions.csv", "region,title\n1,North\n2,South\n")
        for name, sql in MODELS.items():
            self.project.write(f"models/{name}.sql", sql)

    def arrive(self) -> None:
        """New files of every source: insertions, updates and deletions."""
        self._round += 1
        rng, day = self._rng, f"2024-01-{self._round:02d}"
        orders = [f"{rng.randrange(999)},c{rng.randrange(9)},{rng.randrange(1, 999) / 100:.2f},{day}" for _ in range(9)]
        self.project.write(f"orders/{self._round}.csv", "\n".join(["id,customer,amount,day", *orders, ""]))
        customers = [
            {
                "name": f"c{n}",
                "region": rng.choice([1, 2, 3, None]),
                "since": f"{day}T10:00:{n:02d}Z",
                "credit": rng.randrange(999) / 100,
                "gone": rng.random() < 0.2,
            }
            for n in range(9)
        ]
        self.project.records(f"customers/{self._round}.json", customers)
        self.project.write(f"events/{self._round}.json", "".join(self._event() for _ in range(12)))

    def _event(self) -> str:
        self._lsn += 1
        id = self._rng.randrange(8)
        before, after = self._events.pop(id, None), None
        if before is None or self._rng.random() < 0.7:
            after = {"id": id, "price": str(Decimal(self._rng.randrange(999)) / 100), "kind": self._rng.choice("abc")}
            self._events[id] = after
        op = "d" if after is None else "c" if before is None else "u"
        source = {"lsn": self._lsn, "ts_ms": self._lsn, "table": "events"}
        text = json.dumps({"before": before, "after": after, "op": op, "ts_ms": self._lsn, "source": source}) + "\n"
        return text if op != "d" else f"{text}null\n"

    def dbt(self, *arguments: str, java: bool) -> str:
        """Its output. Without Java, whoever asks for a session ends the run."""
        return self._output("dbt", *arguments, "--profiles-dir", str(self.folder), java=java)

    def in_one_process(self, *commands: list[str]) -> str:
        """The output of several commands of dbt that share a process and its session."""
        command = ["tests.dbt.commands", str(self.folder), json.dumps(commands)]
        return fork_server().run(command, _environment(java=True), self.folder)

    def imported(self) -> set[str]:
        """The packages that a run in which nothing has changed imports."""
        call = [
            _DBT,
            "run",
            "--exclude",
            "recent",
            "--project-dir",
            str(self.folder),
            "--profiles-dir",
            str(self.folder),
        ]
        environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
        done = subprocess.run(call, env=environment, capture_output=True, text=True, check=True)
        return {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time")}

    def strategies(self) -> dict[str, str]:
        """How the last run brought each model up to date."""
        found = json.loads((self.folder / "target" / "run_results.json").read_text())
        return {r["unique_id"].rsplit(".", 1)[1]: r["adapter_response"].get("strategy", "") for r in found["results"]}

    def verify(self, spark: SparkSession) -> None:
        """Every model is what Spark makes of its SQL: the suite's Spark, which needs nothing but the stored files."""
        found = verify(spark, Storage(str(self.folder / ".dbt_incremental_dd")))
        assert [v for v in found if not v.exact] == [] and len(found) == len(self.models)

    def dd(self, *arguments: str, java: bool = True) -> str:
        """What ``dbt-dd`` says."""
        return self._output("dbt-dd", *arguments, java=java)

    def _output(self, *command: str, java: bool) -> str:
        return fork_server().run([*command, "--project-dir", str(self.folder)], _environment(java), self.folder)


def _environment(java: bool) -> dict[str, str]:
    assert _JAVA is not None
    path = f"{Path(_JAVA).parent}:/usr/bin:/bin" if java else "/nowhere"
    return {name: value for name, value in {**os.environ, "PATH": path}.items() if name != "JAVA_HOME"}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    made = Shop(tmp_path_factory.mktemp("shop"))
    made.models["recent"] = RECENT
    made.project.write("models/recent.sql", RECENT)
    made.arrive()
    made.dbt("build", java=True)
    return made


def test_runs_without_java(spark: SparkSession, shop: Shop) -> None:
    """Nothing has changed; then each source has something new, several times."""
    shop.dbt("run", java=False)
    strategies = shop.strategies()
    assert strategies.pop("recent") == "delta", "time has gone on"
    assert set(strategies.values()) == {"skip"}
    assert not {"pandas", "duckdb", "pyarrow.dataset", "openlineage", "opentelemetry.sdk"} & shop.imported(), (
        "they take long"
    )
    for _ in range(3):
        shop.arrive()
        shop.dbt("run", java=False)
        assert "delta" in shop.strategies().values()
        assert set(shop.strategies().values()) <= {"delta", "rebuild", "skip"}
    shop.verify(spark)


def test_what_dbt_dd_leaves_is_known(shop: Shop) -> None:
    """Verifying and compacting open the catalog, and tell how they leave it."""
    for verb in ("compact", "verify"):
        shop.dd(verb)
        shop.arrive()
        shop.dbt("run", java=False)


def test_a_relation_that_somebody_dropped_is_made_again(shop: Shop) -> None:
    schema = shop.project.schema
    shop.project.write(
        "macros/drop.sql", f"{{% macro drop() %}}{{% do run_query('drop view {schema}.paid') %}}{{% endmacro %}}"
    )
    shop.in_one_process(["run-operation", "drop"], ["run", "--select", "large"])  # which does not look at the other
    shop.arrive()
    count = f"select count(*) as n from {schema}.paid"
    assert '"n"' in shop.in_one_process(["run"], ["show", "--inline", count, "--output", "json"])
    shop.dbt("run", java=False)


def test_a_seed_that_has_changed_is_taken_in(spark: SparkSession, shop: Shop) -> None:
    shop.project.write("seeds/regions.csv", "region,title\n1,West\n2,South\n3,East\n")
    shop.dbt("build", java=True)
    assert shop.strategies()["paid"] != "skip"
    shop.arrive()
    shop.dbt("run", java=False)
    assert "UNCHANGED 3" in shop.dbt("seed", "--show", java=False)
    shop.verify(spark)


def test_a_seed_that_is_loaded_already_is_left_alone(spark: SparkSession, shop: Shop) -> None:
    """Until its settings change, somebody has touched its table, or it is to be loaded anew."""
    schema, other = shop.project.schema, shop.folder / "seeds" / "colours.csv"
    loaded, same = "INSERT 3", "UNCHANGED 3"
    shop.project.write("seeds/regions.csv", "region,title\n1,West\n2,South\n3,East\n")
    shop.dbt("seed", java=True)
    assert same in shop.dbt("seed", java=False)
    other.write_text("colour\nred\nblue\ngreen\n")
    assert shop.dbt("seed", "--full-refresh", java=True).count("CREATE 3") == 2
    assert shop.dbt("seed", java=False).count(same) == 2
    each = "{% for sql in statements %}{% do run_query(sql) %}{% endfor %}"
    shop.project.write("macros/touch.sql", f"{{% macro touch(statements) %}}{each}{{% endmacro %}}")
    touches = [f"insert into {schema}.regions values (4, 'Far')", f"drop table {schema}.colours"]
    touch = ["run-operation", "touch", "--args", json.dumps({"statements": touches})]
    assert shop.in_one_process(touch, ["seed"]).count(loaded) == 2
    assert shop.dbt("seed", java=False).count(same) == 2
    other.unlink()
    types = "seeds: [{name: regions, config: {column_types: {title: string}}}]"
    shop.project.write("seeds/seeds.yml", types)
    assert loaded in shop.dbt("build", java=True)
    assert same in shop.dbt("build", "--select", "regions", "paid", java=False)
    shop.verify(spark)


_AHEAD = "opened by the start of the command"
_KEPT = """
import sys
from dbt.cli.main import dbtRunner
folders = ["--project-dir", sys.argv[1], "--profiles-dir", sys.argv[1]]
manifest = dbtRunner().invoke(["parse", *folders]).result
for text in sys.argv[2:]:
    with open(f"{sys.argv[1]}/seeds/regions.csv", "w") as file:
        file.write(text)
    assert dbtRunner(manifest=manifest).invoke(["seed", *folders]).success
assert dbtRunner().invoke(["run", *folders]).success
"""


def test_a_seed_is_known_by_its_file_as_it_is_now(spark: SparkSession, shop: Shop) -> None:
    """A file may be so large that dbt takes no checksum of it. Whoever calls dbt with a manifest of before has the
    checksum of before."""
    head = "region,title\n1,West\n2,South\n3,"
    long = "".join(f"{n},{'y' * 99_999}\n" for n in range(9))
    shop.project.write("seeds/regions.csv", f"{head}{'x' * 99_999}\n{long}")
    assert "INSERT 12" in shop.dbt("seed", java=True)
    assert "UNCHANGED 12" in shop.dbt("seed", java=False)
    program = [sys.executable, "-c", _KEPT, str(shop.folder), f"{head}Middle\n", f"{head}East\n"]
    done = subprocess.run(program, env=_environment(java=True), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "UNCHANGED 3" in shop.dbt("seed", java=False)
    shop.verify(spark)


def test_a_table_beside_them_opens_the_session(shop: Shop) -> None:
    shop.project.write(
        "models/plain.sql", "{{ config(materialized='table') }} select count(*) as n from {{ ref('paid') }}"
    )
    told = shop.dbt("run", "--debug", java=True)
    assert "Spark's session is opened by" in told and _AHEAD not in told
    assert _AHEAD in shop.dbt("run", "--debug", java=True), "the last run of all models has asked for it"
    shop.arrive()
    shop.dbt("run", "--exclude", "plain", java=True)  # what that statement has done to the catalog is not known
    shop.dbt("run", "--exclude", "plain", java=False)
