"""Whoever can write the state root can rewrite what is stored there: nothing of it is run, and no path leads out."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import DifferentialError, StateError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime import compile, plan_key
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.explain import explain_model
from dbt_incremental_dd.runtime.relation_sql import as_of_sql
from dbt_incremental_dd.runtime.vacuum import vacuum
from dbt_incremental_dd.runtime.verify import verify
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARK = "dd.test.was.run"
CALL = f"reflect('java.lang.System', 'setProperty', '{MARK}', '1')"
SUMS = "SELECT k, sum(v) AS v FROM {t} GROUP BY k"


def was_run(spark: SparkSession) -> bool:
    """Whether the call has been run; forgets it."""
    found = spark.sql(f"SELECT reflect('java.lang.System', 'getProperty', '{MARK}')").collect()[0][0]
    spark.sql(f"SELECT reflect('java.lang.System', 'clearProperty', '{MARK}')").collect()
    return found not in (None, "null")


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A model that has run once."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(plan_key.VARIABLE, raising=False)
    (tmp_path / "state").mkdir()
    made = World(spark, tmp_path / "state", {"t": Table("k INT, v INT")})
    made.model("m", SUMS)
    made.insert("t", [(1, 1), (2, 2)])
    made.step()
    return made


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that are compiled."""
    names: list[str] = []
    compiled = compile.compile_model

    def counted(*args: Any, **options: Any) -> compile.Compiled:
        names.append(str(args[1]))
        return compiled(*args, **options)

    monkeypatch.setattr(compile, "compile_model", counted)
    return names


def place_of(world: World) -> Path:
    """The model's folder."""
    return Path(world.storage.collection(f"{world.schema}.m").uri)


def goes_on(world: World) -> None:
    """Another run by delta is exact."""
    world.insert("t", [(1, 10), (3, 3)])
    world.step()
    world.check()


def test_a_rewritten_plan_is_not_run(spark: SparkSession, world: World, made: list[str]) -> None:
    (path,) = place_of(world).glob("plan-*.json")
    stored = json.loads(path.read_text())
    signed = json.loads(stored["signed"])
    plan = json.loads(signed["plan"])
    for name, values in plan:
        if name == "Expr":
            values[0] = f"coalesce(CAST({CALL} AS INT), {values[0]})"
    forged = json.dumps({**signed, "plan": json.dumps(plan)})
    for text in ({"signed": forged, "signature": stored["signature"]}, {"signed": forged}, signed, [], None):
        path.write_text(json.dumps(text))
        goes_on(world)
        assert not was_run(spark)
        assert json.loads(path.read_text()) == stored, "it is made again"
    assert len(made) == 5
    (place_of(world) / "plan.json").write_text(json.dumps({**signed, "plan": json.dumps(plan)}))
    goes_on(world)
    assert len(made) == 5 and not was_run(spark)


def test_a_plan_of_another_model_is_not_taken(world: World, made: list[str]) -> None:
    world.model("n", "SELECT k, min(v) AS v FROM {t} GROUP BY k")
    world.step()
    (own,), (other,) = place_of(world).glob("plan-*.json"), place_of(world).parent.glob("*.n/plan-*.json")
    own.write_bytes(other.read_bytes())
    before = len(made)
    goes_on(world)
    assert len(made) == before + 1


def test_two_machines_have_a_plan_each(world: World, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for step in range(3):
        for key in ("a" * 32, "b" * 32):
            monkeypatch.setenv(plan_key.VARIABLE, key)
            goes_on(world)
            assert len(made) == (1 if key[0] == "a" else 2) + (step > 0) * (key[0] == "a")
    assert len(list(place_of(world).glob("plan-*.json"))) == 3
    for number in range(6):
        monkeypatch.setenv(plan_key.VARIABLE, f"{number}" * 32)
        goes_on(world)
    assert len(list(place_of(world).glob("plan-*.json"))) == 4, "those of keys that nobody has any more go"
    monkeypatch.setenv(plan_key.VARIABLE, "short")
    with pytest.raises(DifferentialError, match="DD_PLAN_KEY has 5 characters"):
        goes_on(world)


def test_the_key_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv(plan_key.VARIABLE, raising=False)
    key = plan_key.plan_key()
    (path,) = tmp_path.rglob("*.key")
    assert path.stat().st_mode & 0o777 == 0o600 and len(path.read_text()) == 64
    assert key.is_lasting and key.id not in path.read_text() and path.parent.stat().st_mode & 0o077 == 0
    plan_key._of_file.cache_clear()
    assert plan_key.plan_key().id == key.id
    path.chmod(0o644)
    plan_key._of_file.cache_clear()
    assert not plan_key.plan_key().is_lasting
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    assert not plan_key.plan_key().is_lasting


def test_checking_costs_little() -> None:
    key, text = plan_key.PlanKey(b"k" * 32), "x" * 200_000
    signature = key.sign(text)
    started = time.perf_counter()
    for _ in range(20):
        assert key.has_signed(text, signature)
    assert (time.perf_counter() - started) / 20 < 0.002
    assert not key.has_signed(text + "x", signature) and not key.has_signed(text, None)


def rewrite(world: World, **entries: Any) -> None:
    """Puts entries into the model's manifest."""
    log = world.storage.collection(f"{world.schema}.m").log()
    assert log is not None
    path = place_of(world) / "manifests" / f"{log.manifest}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def schema(dtype: Any) -> str:
    """A schema with a column of that type."""
    fields = [{"name": "k", "type": dtype, "nullable": True, "metadata": {}}]
    return json.dumps({"type": "struct", "fields": fields})


UDT = {
    "type": "udt",
    "pyClass": "tests.faults.test_hostile_storage.no",
    "serializedClass": "gASVAAAA",
    "sqlType": "long",
}
MANIFESTS: dict[str, dict[str, Any]] = {
    "a type that is SQL": {"schema": schema(f"int), {CALL} AS (x")},
    "a nested type that is SQL": {
        "schema": schema({"type": "array", "elementType": f"int> {CALL}", "containsNull": True})
    },
    "a type that loads code": {"schema": schema(UDT)},
    "a schema that is none": {"schema": 7},
    "inputs that are none": {"inputs": ["x"]},
    "versions that are none": {"inner": {"x": "1 OR 1"}},
    "runs that are none": {"runs": [["x"]]},
    "a history that is none": {"retain_history": "1"},
    "an order that is none": {"sorted_by": "k"},
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_of_another_form_is_refused(spark: SparkSession, world: World, name: str) -> None:
    rewrite(world, **MANIFESTS[name])
    model = f"{world.schema}.m"
    for use in (
        lambda: world.step(),
        lambda: verify(spark, world.storage, [model]),
        lambda: explain_model(LazySession.of(spark), world.storage, model),
        lambda: list(compact(LazySession.of(spark), world.storage, [model], 0)),
        lambda: as_of_sql(world.storage, model, world.time),
    ):
        with pytest.raises(StateError, match=r"the manifest of .*\.m at .* cannot be read"):
            use()
    assert not was_run(spark)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT 1 AS k, {CALL} AS v",
        "SELECT identifier('refl' || 'ect')('x') AS v",
        "SELECT TRANSFORM (1) USING 'touch x' AS (v)",
    ],
)
def test_sql_of_a_manifest_is_not_run(spark: SparkSession, world: World, sql: str) -> None:
    rewrite(world, sql=sql, inputs={})
    for use in (verify, lambda s, w, names: explain_model(LazySession.of(s), w, names[0])):
        with pytest.raises(DifferentialError):
            use(spark, world.storage, [f"{world.schema}.m"])
    assert not was_run(spark)


def test_a_function_of_the_users_own_is_verified_by_who_has_compiled_it(
    spark: SparkSession, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION dd_test_twice(x INT) RETURNS INT RETURN 2 * x")
    world.model("m", "SELECT k, dd_test_twice(v) AS v FROM {t}")
    world.step()
    assert verify(spark, world.storage, [f"{world.schema}.m"])[0].exact
    monkeypatch.setenv(plan_key.VARIABLE, "another machine's key")
    with pytest.raises(StateError, match=r"calls dd_test_twice, and it is not known to be a model of this user"):
        verify(spark, world.storage, [f"{world.schema}.m"])


@pytest.mark.parametrize("relation", ["x AS SELECT 1 --", f"m AS SELECT {CALL} AS v; --", "main.other", "{0}.m`; x", 7])
def test_a_relation_of_a_manifest_is_the_models_own(spark: SparkSession, world: World, relation: Any) -> None:
    goes_on(world)
    rewrite(world, relation=relation.format(world.schema) if isinstance(relation, str) else relation)
    with pytest.raises(StateError, match="manifest of"):
        list(compact(LazySession.of(spark), world.storage, [f"{world.schema}.m"], 0))
    assert not was_run(spark)
    world.check()


def files_of(folder: Path) -> dict[str, int]:
    """What is there outside the state root."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path): os.stat(path).st_nlink for path in found if "/state/" not in str(path) and "/home/" not in str(path)
    }


SHOWN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a folder elsewhere": lambda shown: {**shown, "folder": "../../../../outside"},
    "a shape that is none": lambda shown: {**shown, "shape": f"rows {CALL}"},
    "a list": lambda shown: [shown],
    "other entries": lambda shown: {**shown, "x": 1},
    "a negative folder": lambda shown: {**shown, "folder": -1},
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_is_made_again(world: World, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").mkdir()
    path = place_of(world) / "shown.json"
    path.write_text(json.dumps(SHOWN[name](json.loads(path.read_text()))))
    before = files_of(tmp_path)
    goes_on(world)
    assert files_of(tmp_path) == before and not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize(
    "path",
    [
        "../../../../outside/x.parquet",
        "file:///etc/x.parquet",
        "/etc/x.parquet",
        "data/*.parquet",
        "{a,b}",
        "a/../b",
        "..",
    ],
)
def test_a_log_names_its_own_files_alone(world: World, tmp_path: Path, path: str) -> None:
    (entry,) = [p for p in (place_of(world) / "trace" / "_delta_log").glob("*.json") if '"add"' in p.read_text()]
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = path
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
    (tmp_path / "outside").mkdir()
    before = files_of(tmp_path)
    for use in (
        lambda: goes_on(world),
        lambda: as_of_sql(world.storage, f"{world.schema}.m", world.time),
        lambda: list(vacuum(world.storage, older_than=0)),
    ):
        with pytest.raises(StateError, match="the log of"):
            use()
    assert files_of(tmp_path) == before


def test_names_are_folders_of_their_own(world: World) -> None:
    for name in ("..", ".", "a/../../b", "../../x", "...", "~", "c:\\x"):
        for place in (world.storage.collection(name), world.storage.collection("s.m").inner(name)):
            parent, folder = os.path.split(os.path.normpath(place.uri))
            assert folder not in ("", ".", "..") and os.path.basename(parent) in ("collections", "inner")
    rewrite(world, inner={"../../../x": 3, "..": 1}, inputs={"x": "../.."})
    list(compact(LazySession.of(world.spark), world.storage, [f"{world.schema}.m"], 0))
    assert (place_of(world) / "manifests").exists()


@pytest.mark.parametrize(
    "dtype",
    [
        "long",
        "decimal(10,2)",
        "interval day to second",
        "string collate UTF8_LCASE",
        "timestamp_ntz",
        "varchar(3)",
        "void",
    ],
)
def test_types_of_spark_are_known(dtype: str) -> None:
    assert str(Schema.from_json(schema(dtype)).columns[0].type) == dtype


@pytest.mark.parametrize(
    "dtype",
    ["long x", "decimal(1", "int)", "a--", "`x`", "", {"type": "udt"}, {"type": "x"}, ["long"], None, "interval day;"],
)
def test_other_types_are_refused(dtype: Any) -> None:
    with pytest.raises(ValueError):
        Schema.from_json(schema(dtype))
