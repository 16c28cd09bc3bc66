"""What is wrong with a server, a slot or a table is told with what to do, and nothing is lost over it."""

from __future__ import annotations

import logging
import subprocess
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.sources.change_token import change_token, poll_interval
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.connectors.postgres import slots
from dbt_incremental_dd.sources.connectors.postgres.connection import scrubbed
from dbt_incremental_dd.trace.layout import Storage
from tests.feeds.postgres import Feed
from tests.servers.postgres import Postgres, free_port

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SECRET = "correct-horse@battery:staple/9"
QUOTED = "correct-horse%40battery%3Astaple%2F9"


def parsed(**settings: Any) -> None:
    options = {"url": "postgresql://localhost/x", **settings.pop("options", {})}
    parse_source("s.t", "s.t", {"connector": "postgres", "options": options, **settings}, {}, "")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"envelope": "upsert", "key": "id"}, "envelope upsert is not for connector postgres"),
        ({"envelope": "snapshot"}, "envelope snapshot is not for"),
        ({"key": "id"}, "key means nothing"),
        ({"options": {"url": ""}}, "needs a url"),
        ({"options": {"slots": "a"}}, "unknown option slots"),
        ({"options": {"slot": "A-b"}}, "options.slot is 'A-b'"),
        ({"options": {"slot": "a²"}}, "options.slot is 'a²'"),
        ({"path": "x", "format": "csv"}, "means nothing"),
    ],
)
def test_settings(settings: dict[str, Any], words: str) -> None:
    parsed()
    with pytest.raises(ConfigError, match=words):
        parsed(**settings)


def test_the_envelope_is_no_other_connectors() -> None:
    with pytest.raises(ConfigError, match="envelope replica is not for connector table"):
        parse_source("s.t", "s.t", {"envelope": "replica"}, {}, "")


@pytest.mark.parametrize(
    "url", [f"postgresql://u:{SECRET}@h/d", f"postgresql://u:{QUOTED}@h/d", f"postgresql://h/d?password={QUOTED}"]
)
def test_secrets_are_taken_out_of_texts(url: str) -> None:
    for text in (f"no host {SECRET}@h", f"bad {QUOTED}", "host battery", "port staple/9"):
        told = scrubbed(url, text)
        assert "correct-horse" not in told
        assert "?password" in url or not any(part in told for part in ("battery", "staple"))


def test_a_server_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    from dbt_incremental_dd.runtime.run import Run

    storage, port = Storage(str(tmp_path)), free_port()
    for where in (f"u:{QUOTED}@127.0.0.1:{port}", f"u:{SECRET}@127.0.0.1:{port}", f"u:{QUOTED}@nosuch.invalid:{port}"):
        url = f"postgresql://{where}/x"
        spec = parse_source("s.t", "s.t", {"connector": "postgres", "options": {"url": url}}, {}, "")
        began = time.monotonic()
        with pytest.raises(SourceError, match=r"source s\.t: ") as caught:
            Run(LazySession.of(spark), storage, "run", None, print).source(spec)
        assert time.monotonic() - began < 20
        assert not any(part in repr(caught.getrepr()) + str(caught.value) for part in ("correct", "staple"))
        assert change_token(storage, spec) == ((), None) and poll_interval(spec) > 0


pg = pytest.mark.postgres


@pg
@pytest.mark.parametrize(
    ("ddl", "words"),
    [
        ("SELECT 1", r"there is no table .*differential\.table"),
        ("CREATE TABLE t (a int)", r"has no primary key.*ALTER TABLE .*REPLICA IDENTITY FULL"),
        (
            "CREATE TABLE t (a int PRIMARY KEY); ALTER TABLE t REPLICA IDENTITY NOTHING",
            r"REPLICA IDENTITY NOTHING.*ALTER TABLE",
        ),
        ("CREATE TABLE t (a int PRIMARY KEY DEFERRABLE)", r"has no primary key.*ALTER TABLE"),
        ("CREATE VIEW t AS SELECT 1 AS a", "no ordinary table"),
        ("CREATE UNLOGGED TABLE t (a int PRIMARY KEY)", "no ordinary table"),
        ('CREATE TABLE t (a int PRIMARY KEY, "A" int)', "differ in case"),
        ("CREATE TABLE t (a int PRIMARY KEY, dd_time int)", "begin with dd_"),
    ],
)
def test_tables_that_cannot_be_followed(feed: Feed, ddl: str, words: str) -> None:
    feed.sql("CREATE TABLE fine (a int PRIMARY KEY); INSERT INTO fine VALUES (1)", ddl)
    with pytest.raises(SourceError, match=rf"(?s)source public\.t: .*{words}"):
        feed.run(feed.spec("fine"), feed.spec("t"))
    feed.check("fine")


@pg
def test_permissions(feed: Feed) -> None:
    feed.sql(
        "DROP ROLE IF EXISTS plain", "DROP ROLE IF EXISTS follower", "CREATE ROLE plain LOGIN", "CREATE ROLE follower LOGIN REPLICATION",
        "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1); GRANT SELECT ON t TO plain",
    )  # fmt: skip
    spec = feed.spec(
        "t", options={"url": feed.server.url("plain", SECRET.split("@")[0], feed.database), "publication": "p"}
    )
    with pytest.raises(
        SourceError,
        match=r"(?s)publication cannot be made.*Have its owner run: CREATE PUBLICATION \"p\" FOR TABLE ONLY \"public\".\"t\"",
    ):
        feed.run(spec)
    feed.sql('CREATE PUBLICATION "p" FOR TABLE ONLY "public"."t"')
    with pytest.raises(SourceError, match=r"(?s)(replication|WAL sender).*ALTER ROLE \.\.\. REPLICATION") as caught:
        feed.run(spec)
    assert "correct-horse" not in repr(caught.getrepr())
    spec = feed.spec("t", options={"url": feed.server.url("follower", database=feed.database), "publication": "p"})
    with pytest.raises(SourceError, match=r"(?s)permission denied for table .*GRANT SELECT"):
        feed.run(spec)
    feed.sql("GRANT SELECT ON t TO follower")
    feed.run(spec)
    feed.check("t")
    feed.sql("CREATE TABLE u (a int PRIMARY KEY); GRANT SELECT ON u TO follower")
    other = feed.spec("u", options={"url": feed.server.url("follower", database=feed.database), "publication": "p"})
    with pytest.raises(SourceError, match=r"ALTER PUBLICATION \"p\" ADD TABLE"):
        feed.run(spec, other)
    feed.check("t")
    feed.sql("INSERT INTO t VALUES (2)")
    if feed.server.version >= 15:
        feed.sql("ALTER PUBLICATION p ADD TABLE u WHERE (a > 5)")
        with pytest.raises(SourceError, match="row filter"):
            feed.run(spec, other)
        feed.check("t")
    feed.sql("ALTER PUBLICATION p SET (publish = 'insert')")
    with pytest.raises(SourceError, match="leaves out some kinds of changes"):
        feed.run(spec)
    feed.sql("ALTER PUBLICATION p SET (publish = 'insert, update, delete, truncate')")


@pg
def test_what_is_wrong_with_one_table_is_not_the_others_trouble(feed: Feed) -> None:
    feed.sql(*(f"CREATE TABLE {name} (a int PRIMARY KEY, d date)" for name in ("fine", "bad")))
    fine, bad = feed.spec("fine"), feed.spec("bad")
    feed.sql("INSERT INTO bad VALUES (1, 'infinity')", "INSERT INTO fine VALUES (1, NULL)")
    with pytest.raises(SourceError, match=r"public\.bad: column d"):
        feed.run(fine, bad)
    feed.check("fine")
    feed.sql("DELETE FROM bad")
    feed.run(fine, bad)
    feed.sql("INSERT INTO bad VALUES (1, 'infinity')", "INSERT INTO fine VALUES (2, NULL)")
    for _ in range(2):
        with pytest.raises(SourceError, match=r"public\.bad: column d"):
            feed.run(fine, bad)
        feed.check("fine")
    feed.sql("UPDATE bad SET d = '2024-01-01'")
    feed.run(fine, bad)
    feed.check("fine", "bad")


@pg
def test_slots_that_others_have_touched(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.sql("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
    spec = feed.spec("t")
    feed.run(spec)
    slot = feed.slot()[0]
    with pytest.raises(SourceError, match=f"followed through replication slot {slot} so far, now through other"):
        feed.run(feed.spec("t", options={"slot": "other"}))
    feed.sql("INSERT INTO t VALUES (2)", f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())")
    with pytest.raises(
        SourceError,
        match=rf"(?s)replication slot {slot} is at .* already, .*what is between is gone.*remove its folder",
    ):
        feed.run(spec)
    feed.sql(f"SELECT pg_drop_replication_slot('{slot}')")
    with pytest.raises(SourceError, match=rf"replication slot {slot} is gone"):
        feed.run(spec)
    feed.sql(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    with pytest.raises(SourceError, match="what is between is gone"):
        feed.run(spec)
    assert feed.rows("t") == {(1,): 1}
    feed.storage.collection("public.t").remove()
    feed.run(spec)
    feed.check("t")
    feed.sql(
        f"SELECT pg_drop_replication_slot('{slot}')",
        f"SELECT pg_create_logical_replication_slot('{slot}', 'test_decoding')",
    )
    with pytest.raises(SourceError, match="is another's: plugin test_decoding"):
        feed.run(spec)


@pg
def test_a_slot_in_use_and_a_transaction_that_does_not_end(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_PATIENCE", 1.0)
    monkeypatch.setattr(slots, "_IN_USE", 1.0)
    feed.sql("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
    spec = feed.spec("t")
    with psycopg.connect(feed.url) as other:
        other.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(SourceError, match=r"(?s)open for too long.*pg_stat_activity"):
            feed.run(spec)
    feed.run(spec)
    feed.check("t")
    slot = feed.slot()[0]
    feed.sql("INSERT INTO t VALUES (3)")
    command = feed.server.program("pg_recvlogical", "-d", feed.url, "-S", slot, "--start", "-f", "/dev/null", "-n")
    reader = subprocess.Popen([*command, "-o", "proto_version=1", "-o", f"publication_names={slot}"])
    try:
        with psycopg.connect(feed.url, autocommit=True) as other:
            active = f"SELECT active FROM pg_replication_slots WHERE slot_name = '{slot}'"
            while other.execute(active).fetchone() != (True,):
                assert reader.poll() is None
                time.sleep(0.05)
        with pytest.raises(SourceError, match=rf"(?s){slot}.* is active.*slot of its own"):
            feed.run(spec)
    finally:
        reader.kill()
        reader.wait()
    monkeypatch.undo()
    feed.run(spec)
    feed.check("t")


@pg
def test_servers_that_cannot_be_followed(spark: SparkSession, tmp_path: Path) -> None:
    for number, (settings, words) in enumerate((
        ({"wal_level": "replica"}, "wal_level is replica.*ALTER SYSTEM"),
        ({"max_replication_slots": 1}, "max_replication_slots"),
        ({"max_wal_senders": 0}, "max_wal_senders"),
    )):  # fmt: skip
        server = Postgres(**settings)
        try:
            server.start()
            feed = Feed(spark, server, tmp_path / str(number))
            feed.sql("CREATE TABLE t (a int PRIMARY KEY)")
            if "max_replication_slots" in settings:
                feed.sql("SELECT pg_create_physical_replication_slot('taken')")
            with pytest.raises(SourceError, match=rf"(?s){words}"):
                feed.run(feed.spec("t"))
        finally:
            server.stop()


@pg
def test_log_that_the_server_has_removed(spark: SparkSession, tmp_path: Path) -> None:
    server = Postgres(max_slot_wal_keep_size="1MB", min_wal_size="32MB", max_wal_size="32MB", wal_init_zero="off")
    try:
        server.start()
        feed = Feed(spark, server, tmp_path)
        feed.sql("CREATE TABLE t (a int PRIMARY KEY)")
        spec = feed.spec("t")
        feed.run(spec)
        for _ in range(4):
            feed.sql(
                "INSERT INTO t SELECT count(*) FROM t",
                "SELECT pg_switch_wal()",
                "CREATE TABLE x AS SELECT 1 AS a",
                "DROP TABLE x",
                "CHECKPOINT",
            )
        with pytest.raises(SourceError, match=r"(?s)wal_status lost.*max_slot_wal_keep_size"):
            feed.run(spec)
    finally:
        server.stop()


@pg
def test_the_password_is_in_no_file_log_or_text(feed: Feed, caplog: pytest.LogCaptureFixture) -> None:
    feed.sql("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
    url = feed.server.url(password=QUOTED, database=feed.database)
    spec = feed.spec("t", options={"url": url})
    with caplog.at_level(logging.DEBUG):
        feed.run(spec)
        feed.sql("INSERT INTO t VALUES (2)")
        feed.run(spec)
        feed.sql("ALTER TABLE t ADD b int")
        with pytest.raises(SourceError) as caught:
            feed.run(spec)
    feed.sql("ALTER TABLE t DROP b")
    told = [*feed.told, repr(spec), repr(caught.getrepr()), *(record.getMessage() for record in caplog.records)]
    assert not [text for text in told if "correct-horse" in text]
    files = [path for path in feed.folder.rglob("*") if path.is_file() and b"correct-horse" in path.read_bytes()]
    assert not files


@pg
def test_what_a_source_looks_like(feed: Feed) -> None:
    feed.sql("CREATE TABLE t (a int PRIMARY KEY)")
    spec = feed.spec("t")
    feed.run(spec)
    feed.run(spec)
    before = change_token(feed.storage, spec)
    feed.run(spec)
    feed.sql("INSERT INTO t VALUES (1)")
    assert change_token(feed.storage, spec) != before
