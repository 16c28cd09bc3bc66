"""Tables of a PostgreSQL server, as their log has them: after every run what is stored is what the server has."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.sources.connectors.database_log import spool
from tests.feeds.postgres import Feed

pytestmark = pytest.mark.postgres


def test_a_copy_and_then_changes(feed: Feed) -> None:
    feed.sql(
        "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 10) i"
    )
    spec = feed.spec("t")
    assert feed.run(spec) == {"t": 10}
    feed.check("t")
    assert feed.run(spec) == {"t": 0}
    feed.sql("INSERT INTO t VALUES (11, NULL)", "UPDATE t SET v = 'new' WHERE id = 1", "DELETE FROM t WHERE id = 2")
    assert feed.run(spec) == {"t": 4}
    feed.check("t")
    feed.sql("UPDATE t SET id = id + 100 WHERE id < 5; INSERT INTO t VALUES (1, 'again')")
    feed.run(spec)
    feed.check("t")
    feed.sql("UPDATE t SET id = -1 WHERE id = 1; UPDATE t SET id = 1 WHERE id = -1; DELETE FROM t WHERE id = 11")
    feed.run(spec)
    feed.check("t")
    assert feed.slot()[1] != "0/0"


def test_identities(feed: Feed) -> None:
    feed.sql(
        "CREATE TABLE by_index (a int NOT NULL, b text NOT NULL, c int, v text)",
        "CREATE UNIQUE INDEX u ON by_index (b, a)",
        "ALTER TABLE by_index REPLICA IDENTITY USING INDEX u",
        "CREATE TABLE whole (a int, v text)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "INSERT INTO by_index VALUES (1, 'x', NULL, 'one'), (1, 'y', 2, 'two')",
        "INSERT INTO whole VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (NULL, NULL), (2, 'y')",
    )
    specs = feed.spec("by_index"), feed.spec("whole")
    feed.run(*specs)
    feed.check("by_index", "whole")
    feed.sql(
        "UPDATE by_index SET v = 'three', c = 3 WHERE b = 'x'; UPDATE by_index SET b = 'z' WHERE b = 'y'",
        "DELETE FROM whole WHERE ctid = (SELECT min(ctid) FROM whole)",
        "UPDATE whole SET v = 'z' WHERE a IS NULL; INSERT INTO whole VALUES (2, 'y')",
    )
    feed.run(*specs)
    feed.check("by_index", "whole")
    feed.sql("DELETE FROM by_index WHERE b = 'z'", "DELETE FROM whole WHERE a = 2", "UPDATE whole SET a = 1")
    feed.run(*specs)
    feed.check("by_index", "whole")
    feed.sql("ALTER TABLE by_index REPLICA IDENTITY FULL", "INSERT INTO by_index VALUES (1, 'x2', 1, 'f')")
    feed.run(*specs)
    feed.check("by_index", "whole")
    feed.sql(
        "UPDATE by_index SET c = 9",
        "ALTER TABLE by_index REPLICA IDENTITY USING INDEX u",
        "UPDATE by_index SET v = 'w'",
    )
    feed.run(*specs)
    feed.check("by_index", "whole")


def test_values_that_an_update_leaves_alone(feed: Feed) -> None:
    """TOASTed ones are not in the log again."""
    large = "(SELECT string_agg(md5(i::text || %s), '') FROM generate_series(1, 400) i)"
    feed.sql(
        "CREATE TABLE t (id int PRIMARY KEY, n int, a text, b text)",
        "CREATE TABLE f (id int, n int, a text)",
        "ALTER TABLE f REPLICA IDENTITY FULL",
        *(f"INSERT INTO t VALUES ({i}, 0, {large % i}, {large % -i})" for i in range(1, 7)),
        f"INSERT INTO f VALUES (1, 1, {large % 1})",
    )
    specs = feed.spec("t"), feed.spec("f")
    feed.run(*specs)
    feed.check("t", "f")
    feed.sql(
        "UPDATE t SET n = 1 WHERE id = 1",
        f"UPDATE t SET a = {large % 77} WHERE id = 2",
        "UPDATE t SET n = 2 WHERE id = 2",
        "UPDATE t SET id = 30 WHERE id = 3; UPDATE t SET id = 31, n = 5 WHERE id = 30",
        "UPDATE t SET id = 40 WHERE id = 4; UPDATE t SET id = 4 WHERE id = 5; UPDATE t SET b = 'small' WHERE id = 4",
        f"INSERT INTO t VALUES (60, 0, {large % 60}, {large % 61}); UPDATE t SET n = 9 WHERE id = 60",
        "UPDATE t SET n = 1 WHERE id = 6; DELETE FROM t WHERE id = 6",
        "UPDATE f SET n = 2",
    )
    feed.run(*specs)
    feed.check("t", "f")


@pytest.mark.parametrize("few", [True, False])
def test_many_changes(feed: Feed, monkeypatch: pytest.MonkeyPatch, few: bool) -> None:
    """Also where only a few of them are held in memory, by key and by row, whatever comes twice."""
    if not few:
        feed.storage = replace(feed.storage, thresholds=Thresholds(taken_rows=7))
        monkeypatch.setattr(spool, "MOST_BYTES", 2_000)
    feed.sql(
        "CREATE TABLE t (id int PRIMARY KEY, n int, v text)",
        "CREATE TABLE f (id int, n int)",
        "ALTER TABLE f REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT i, i, i FROM generate_series(1, 100) i; INSERT INTO f SELECT i % 7, i FROM generate_series(1, 100) i",
    )
    specs = feed.spec("t"), feed.spec("f")
    feed.run(*specs)
    feed.check("t", "f")
    feed.sql(
        "UPDATE t SET n = n + 1 WHERE id % 2 = 0; UPDATE t SET n = n + 1 WHERE id % 3 = 0; DELETE FROM t WHERE id % 5 = 0",
        "UPDATE f SET n = 0; UPDATE f SET n = id WHERE id % 3 = 0; DELETE FROM f WHERE id = 1",
        "UPDATE t SET id = id + 1000 WHERE id < 20; INSERT INTO t SELECT i, i, NULL FROM generate_series(1, 19) i",
        "BEGIN; SAVEPOINT a; DELETE FROM t; DELETE FROM f; ROLLBACK TO a; INSERT INTO f VALUES (1, 1); COMMIT",
        "BEGIN; DELETE FROM t; DELETE FROM f; ROLLBACK",
    )
    feed.run(*specs)
    feed.check("t", "f")
    large = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400) i)"
    feed.sql(f"UPDATE t SET v = {large} WHERE id > 50")
    feed.run(*specs)
    feed.sql("UPDATE t SET n = 1 WHERE id > 50; UPDATE t SET id = -id WHERE id > 50; UPDATE t SET n = id")
    feed.run(*specs)
    feed.check("t", "f")


@pytest.mark.parametrize("few", [True, False])
def test_truncate(feed: Feed, few: bool) -> None:
    if not few:
        feed.storage = replace(feed.storage, thresholds=Thresholds(taken_rows=2))
    feed.sql(
        "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a)",
        "CREATE TABLE c (n int); ALTER TABLE c REPLICA IDENTITY FULL",
        "INSERT INTO a SELECT generate_series(1, 9); INSERT INTO b VALUES (1, 1), (2, 9); INSERT INTO c VALUES (1), (1)",
    )
    specs = feed.spec("a"), feed.spec("b"), feed.spec("c")
    feed.run(*specs)
    feed.sql(
        "INSERT INTO a VALUES (100); INSERT INTO c VALUES (5); TRUNCATE a CASCADE; TRUNCATE c; INSERT INTO a VALUES (3), (50)",
        "INSERT INTO b VALUES (7, 50); UPDATE a SET id = 4 WHERE id = 3; INSERT INTO c VALUES (1), (7); DELETE FROM c WHERE n = 7",
    )
    feed.run(*specs)
    feed.check("a", "b", "c")
    feed.sql("TRUNCATE a, b, c", "INSERT INTO c VALUES (2)")
    feed.run(*specs)
    feed.check("a", "b", "c")
    feed.sql("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1, 1)", "VACUUM FULL c")
    feed.run(*specs)
    feed.check("a", "b", "c")


def test_partitions(feed: Feed) -> None:
    feed.sql(
        "CREATE TABLE p (id int, day date, v text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2024-01-01') TO ('2024-02-01')",
        "CREATE TABLE p2 (v text, gone int, day date NOT NULL, id int NOT NULL)",
        "ALTER TABLE p2 DROP COLUMN gone",
        "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')",
        "INSERT INTO p SELECT i, date '2024-01-01' + i, i FROM generate_series(0, 50) i",
    )
    spec = feed.spec("p")
    feed.run(spec)
    feed.check("p")
    feed.sql(
        "UPDATE p SET v = 'x' WHERE id % 2 = 0", "UPDATE p SET day = day + 31 WHERE id = 1; DELETE FROM p WHERE id = 40"
    )
    feed.run(spec)
    feed.check("p")
    feed.sql("TRUNCATE p1")  # the log of the whole table does not tell it
    feed.run(spec)
    feed.check("p")
    feed.sql("CREATE TABLE p3 (LIKE p INCLUDING ALL)", "INSERT INTO p3 VALUES (1, '2024-03-05', 'attached')")
    feed.sql(
        "ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM ('2024-03-01') TO ('2024-04-01')",
        "INSERT INTO p VALUES (2, '2024-03-05', 'x')",
    )
    feed.run(spec)
    feed.check("p")
    feed.sql("DROP TABLE p2", "INSERT INTO p VALUES (3, '2024-01-05', 'x')")
    feed.run(spec)
    feed.check("p")
    feed.sql("TRUNCATE p; INSERT INTO p VALUES (3, '2024-01-06', 'x')")
    feed.run(spec)
    feed.check("p")


def test_names(feed: Feed) -> None:
    feed.sql(
        'CREATE SCHEMA "Odd ""Schema"; CREATE TABLE "Odd ""Schema"."My.Table" ("The Key" int PRIMARY KEY, "a.b" text, "ü`x" text, "from" int)',
        'INSERT INTO "Odd ""Schema"."My.Table" VALUES (1, \'a\', \'b\', 2)',
        "CREATE TABLE empty_one (id int PRIMARY KEY)",
    )
    spec = feed.spec("odd", table='"Odd ""Schema"."My.Table"')
    empty = feed.spec("empty_one")
    feed.run(spec, empty)
    assert set(feed.rows("odd")) == {(1, "a", "b", 2)} and not feed.rows("empty_one")
    feed.sql('UPDATE "Odd ""Schema"."My.Table" SET "a.b" = NULL', "INSERT INTO empty_one VALUES (5)")
    feed.run(spec, empty)
    assert set(feed.rows("odd")) == {(1, None, "b", 2)} and set(feed.rows("empty_one")) == {(5,)}


def test_tables_that_are_altered_without_the_logs_telling(feed: Feed) -> None:
    feed.sql("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    spec = feed.spec("t")
    feed.run(spec)
    feed.sql("ALTER TABLE t ALTER n TYPE int USING n * 10", "INSERT INTO t VALUES (3, 3)")
    feed.run(spec)
    feed.check("t")
    feed.sql("DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (2, 20), (9, 9)")
    feed.run(spec)
    feed.check("t")
    slot = feed.slot()[0]
    feed.sql(
        f"ALTER PUBLICATION {slot} DROP TABLE t", "DELETE FROM t WHERE id = 2", f"ALTER PUBLICATION {slot} ADD TABLE t"
    )
    feed.run(spec)
    feed.check("t")
    feed.sql(
        "INSERT INTO t VALUES (4, 4)",
        "ALTER TABLE t ADD m int",
        "INSERT INTO t VALUES (5, 5, 5)",
        "ALTER TABLE t DROP m",
    )
    feed.run(spec)
    feed.check("t")
    feed.sql("ALTER TABLE t ADD m int")
    with pytest.raises(SourceError, match=r"(?s)public\.t: .*columns.*m came.*remove its folder"):
        feed.run(spec)
    feed.sql("ALTER TABLE t DROP m", "ALTER TABLE t ALTER n TYPE bigint")
    with pytest.raises(SourceError, match="n was integer and is long"):
        feed.run(spec)
    feed.sql("ALTER TABLE t ALTER n TYPE int")
    feed.run(spec)
    feed.check("t")


def test_transactions_are_whole_across_tables_new_ones_included(feed: Feed) -> None:
    """Money moves between two tables all the time, and others come in while it does."""
    feed.sql(
        *(f"CREATE TABLE {name} (id int PRIMARY KEY, n bigint)" for name in "abc"),
        *(f"INSERT INTO {name} SELECT i, 1000 FROM generate_series(1, 20) i" for name in "abc"),
    )
    stop, failures = threading.Event(), []

    def writes(number: int) -> None:
        try:
            with feed.connect() as connection:
                while not stop.is_set():
                    for one, other in ("ab", "bc", "ca"):
                        with connection.transaction():
                            connection.execute(f"UPDATE {one} SET n = n - 1 WHERE id = %s", (number,))
                            connection.execute(f"UPDATE {other} SET n = n + 1 WHERE id = %s", (number + 4,))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=writes, args=(number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    try:
        specs = [feed.spec(name) for name in "abc"]
        for round in range(8):
            taken = specs if round > 1 else specs[: 2 + round]
            feed.run(*taken)
            if len(taken) == 3:
                total = sum(row[1] * count for name in "abc" for row, count in feed.rows(name).items())
                assert total == 60_000, f"round {round}"
                assert len({feed.progress(name)["lsn"] for name in "abc"}) == 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures
    feed.run(*specs)
    feed.check("a", "b", "c")


def test_a_source_that_the_run_was_not_said_to_read(feed: Feed) -> None:
    feed.sql(
        *(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in "ab"),
        "INSERT INTO a VALUES (1)",
        "INSERT INTO b VALUES (1)",
    )
    a, b = feed.spec("a"), feed.spec("b")
    feed.run(a, b, expected=())
    feed.check("a", "b")
    assert any("public.b" in line and "later than what the run has of other tables" in line for line in feed.told)
    feed.sql("INSERT INTO a VALUES (2); INSERT INTO b VALUES (2)")
    feed.run(a, b, expected=())
    feed.check("a", "b")
    assert feed.progress("a")["lsn"] == feed.progress("b")["lsn"]


def test_the_server_keeps_what_the_last_follower_needs(feed: Feed) -> None:
    feed.sql(*(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in "ab"))
    a, b = feed.spec("a"), feed.spec("b")
    feed.run(a, b)
    begin = feed.progress("b")["lsn"]
    for i in range(3):
        feed.sql(f"INSERT INTO a VALUES ({i}); INSERT INTO b VALUES ({i})")
        feed.run(a)
    (position,) = feed.connection.execute("SELECT (%s::pg_lsn - '0/0')::bigint", (feed.slot()[1],)).fetchone() or ()
    assert position == begin < feed.progress("a")["lsn"]
    feed.run(a, b)
    feed.check("a", "b")
    feed.run(a, b)
    (position,) = feed.connection.execute("SELECT (%s::pg_lsn - '0/0')::bigint", (feed.slot()[1],)).fetchone() or ()
    assert position == feed.progress("b")["lsn"] > begin


def test_quiet_tables_do_not_keep_the_servers_log(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_incremental_dd.sources.connectors.postgres.connector._QUIET", 1 << 16)
    feed.sql("CREATE TABLE quiet (id int PRIMARY KEY); CREATE TABLE noise (v text)")
    spec = feed.spec("quiet")
    feed.run(spec)
    before = feed.progress("quiet")["lsn"]
    feed.sql("INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
    feed.run(spec)
    assert feed.progress("quiet")["lsn"] > before
    feed.run(spec)
    feed.sql("INSERT INTO quiet VALUES (1)")
    feed.run(spec)
    feed.check("quiet")
