"""Everything that needs no Spark, on a state root in S3: reading, following, querying, looking after it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import dbt_incremental_dd
from airflow_differential.collections import upper
from dbt_incremental_dd.cli import main
from dbt_incremental_dd.core.errors import CommitConflict, StateError
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING
from dbt_incremental_dd.open_table.registry import FORMATS
from dbt_incremental_dd.query.engine import QueryEngine
from dbt_incremental_dd.query.session import Session
from dbt_incremental_dd.runtime.vacuum import vacuum
from dbt_incremental_dd.storage import uploads
from dbt_incremental_dd.storage.mirror import mirror_of
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.compact import merge_recent
from dbt_incremental_dd.trace.damage import damage
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.holds import held_by, hold, release
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.managed_frontier import declare, declared
from dbt_incremental_dd.trace.write import write_arrow
from tests.cluster.conftest import Store
from tests.open_table.readers import Rows, by_delta_rs
from tests.open_table.test_random import Rounds
from tests.open_table.written import Written
from tests.servers.gcs import Gcs
from tests.subscribe.stored import Stored, rows_of

pytestmark = pytest.mark.cluster


@pytest.fixture
def stored(store: Store, request: pytest.FixtureRequest) -> Stored:
    made = Stored(f"{store.root}/{request.node.originalname}", store.options)
    made.commit({10: Counter({(1, "a"): 1, (2, "b"): 3})}, 11)
    made.commit({20: Counter({(2, "b"): -1, (3, None): 1})}, 31)
    return made


def test_small_files(store: Store) -> None:
    storage = Storage(f"{store.root}/small", store.options)
    storage.require_writable()
    assert storage.read_small("a/b.json") is None
    for text in ("one", "another"):
        storage.write_small("a/b.json", text)
        assert storage.read_small("a/b.json") == text
    storage.remove(f"{storage.root}/a")
    assert storage.read_small("a/b.json") is None


def test_reading_following_and_asking(stored: Stored, store: Store) -> None:
    root = stored.place.storage.root
    database = dbt_incremental_dd.open(root, storage_options=store.options)
    (status,) = database.status()
    assert (status.name, status.updates, status.upper) == ("m.kept", 4, 31)
    kept = database["m.kept"]
    assert rows_of(kept.as_of()) == Counter({(1, "a"): 1, (2, "b"): 2, (3, None): 1})
    assert rows_of(kept.as_of(15)) == Counter({(1, "a"): 1, (2, "b"): 3})
    assert [entry.upper for entry in kept.history()] == [0, 11, 31]
    batches = iter(kept.subscribe(name="reader"))
    assert rows_of(next(batches).updates) == rows_of(kept.as_of())
    stored.commit({40: Counter({(4, "d"): 1})}, 41)
    assert rows_of(next(batches).updates) == Counter({(4, "d"): 1})
    session = Session(QueryEngine(Storage(root, store.options)))
    for sql, wanted in (("select count(*) from kept", 5), ("select k from m.kept where v = 'd'", 4)):
        found = [tuple(row.values()) for batch in session.select(sql).batches for row in batch.to_pylist()]
        assert found == [(wanted,)]


def test_a_small_file_is_written_while_python_ends(store: Store) -> None:
    """What a session's memory is: no thread may be started then."""
    storage = Storage(f"{store.root}/end", store.options)
    code = (
        "import atexit, json, sys; from dbt_incremental_dd.trace.layout import Storage; "
        "storage = Storage(sys.argv[1], json.loads(sys.argv[2])); "
        "atexit.register(storage.write_small, 'session.json', 'the end')"
    )
    subprocess.run([sys.executable, "-c", code, storage.root, json.dumps(store.options)], check=True)
    assert storage.read_small("session.json") == "the end"


def test_another_machine_fetches_the_pages_of_its_keys(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(f"{store.root}/pages", store.options)
    schema = Schema((Column("k", LONG), Column("v", STRING), TIME_COLUMN, DIFF_COLUMN))
    made = pa.table({"k": range(400_000), "v": [f"value {n}" for n in range(400_000)]})
    made = made.append_column("dd_time", pa.array([1] * 400_000)).append_column("dd_diff", pa.array([1] * 400_000))
    uri = storage.collection("m.x").trace_uri
    file = write_arrow(storage, uri, made, schema, ("k",))
    uploads.settle(uri)
    monkeypatch.setenv("DBT_DD_CACHE", str(tmp_path))
    mirror_of.cache_clear()
    try:
        found = read_files(storage, uri, [file], schema, {"k": [7, 300_007]})
    finally:
        mirror_of.cache_clear()
    assert found.column("v").to_pylist() == ["value 7", "value 300007"]
    (part,) = tmp_path.rglob("*.parquet.part")
    assert not list(tmp_path.rglob("*.parquet")) and part.stat().st_blocks * 512 < file.bytes / 2


@pytest.mark.parametrize("format", FORMATS)
def test_an_open_table(store: Store, tmp_path: Path, format: str) -> None:
    """Beside the collection, read by others from the store."""
    written = Written(f"{store.root}/open-table-{format}", format, store.options)
    rounds = Rounds(written, 3)
    for t in range(1_000, 1_012):
        rounds.step(t)
        assert _shown(written, store, tmp_path) == written.as_of(t), t
    assert _shown(written, store, tmp_path, rounds.versions[1_003]) == written.as_of(1_003)


def _shown(written: Written, store: Store, folder: Path, version: int | None = None) -> Rows:
    """The emulator of Google's store does not answer the requests that delta-rs makes side by side: of that one a copy
    is read."""
    if written.format != "delta" or not isinstance(store, Gcs):
        return written.shown(version)
    objects, table = objects_of(written.uri, written.storage.options)
    for name in objects.below(table):
        copy = folder / "copy" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(objects.read(f"{table}/{name}"))
    return by_delta_rs(str(folder / "copy"), written.columns, version)


def test_what_readers_and_schedulers_say(stored: Stored) -> None:
    place = stored.place
    assert declared(place) is None
    assert declare(place, 50) == 50
    assert declare(place, 40) == declared(place) == 50
    hold(place, "r", 10, "somebody", until=1 << 60)
    held = held_by(place, "r")
    assert held is not None and held.at == 10
    release(place, "r")
    assert held_by(place, "r") is None


def test_a_log_is_known_until_somebody_commits(stored: Stored, store: Store) -> None:
    place = stored.place
    known = place.log()
    assert known is not None and place.log() is known
    code = (
        "import json, sys; from dbt_incremental_dd.trace.layout import Storage; "
        "from dbt_incremental_dd.trace.commit import Commit; "
        "log = Storage(sys.argv[1], json.loads(sys.argv[2])).collection('m.kept').log(); log.commit(Commit(upper=99))"
    )
    subprocess.run([sys.executable, "-c", code, place.storage.root, json.dumps(store.options)], check=True)
    with pytest.raises(CommitConflict):
        known.commit(Commit(upper=60))
    log = place.log()
    assert log is not None and log is not known and log.frontiers.upper == 99
    place.remove()
    assert place.log() is None


def test_many_commits_stay_cheap_to_read_and_are_vacuumed(stored: Stored) -> None:
    for t in range(40, 64):
        stored.commit({t: Counter({(t, "x"): 1})}, t + 1)
    place = stored.place
    before = rows_of(stored.collection.as_of())
    log = place.log()
    assert log is not None
    assert len(merge_recent(place.storage, log).files) < len(log.files)
    told = list(vacuum(place.storage, older_than=0))
    assert told[0].startswith("m.kept: ") and not told[0].startswith("m.kept: 0 ")
    log = Storage(place.storage.root, place.storage.options).collection("m.kept").log()
    assert log is not None and damage(place.storage, log) is None
    assert rows_of(stored.collection.as_of()) == before


@pytest.mark.parametrize("store", ["s3", "azure_server"], indirect=True)
def test_a_store_that_refuses_is_named_without_its_credentials(store: Store) -> None:
    assert not isinstance(store, Gcs)
    wrong, secret = store.refused()
    for act in (lambda storage: storage.require_writable(), lambda storage: storage.collection("m.t").log()):
        with pytest.raises((StateError, OSError)) as error:
            act(Storage(f"{store.root}/refused", wrong))
        assert f"{store.root}/refused" in str(error.value)
        assert secret not in str(error.value)


def test_tables_of_any_types_are_read_as_they_were_written(store: Store, tmp_path: Path) -> None:
    from dbt_incremental_dd.trace.driver_reader import read_files
    from dbt_incremental_dd.trace.spark_reader import schema_of
    from dbt_incremental_dd.trace.write import write_arrow

    table = pa.table({"k": pa.array(range(50_000), pa.int64()), "v": [str(n % 7) for n in range(50_000)]})
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    schema = schema_of(StructType([StructField("k", LongType()), StructField("v", StringType())]))
    found = []
    for root, options in ((f"{store.root}/typed", store.options), (str(tmp_path), {})):
        storage = Storage(root, options)
        file = write_arrow(storage, root, table, schema, ("k",))
        wanted = read_files(storage, root, (file,), schema, {"k": [3, 49_999]})
        found.append((file.rows, file.bytes, file.bounds, wanted.sort_by("k").to_pylist()))
    assert found[0] == found[1]
    assert found[0][3] == [{"k": 3, "v": "3"}, {"k": 49_999, "v": str(49_999 % 7)}]


def test_commands_and_sensors_take_the_options_of_the_environment(
    stored: Stored, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in store.options.items():
        monkeypatch.setenv(name.upper(), value)
    root = stored.place.storage.root
    assert main(["--state-root", root, "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["collection"] == "m.kept"
    assert main(["--state-root", root, "query", "kept", "--format", "json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert upper(root, "m.kept") == 31
