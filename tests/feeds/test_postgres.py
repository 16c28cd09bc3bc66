"""Tables of a PostgreSQL server, as their log has them."""

from __future__ import annotations

import pytest

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
    feed.sql("TRUNCATE t; INSERT INTO t VALUES (7, 'after')")
    feed.run(spec)
    feed.check("t")
