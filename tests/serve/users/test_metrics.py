"""Metrics, as Prometheus' own parser reads them."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import httpx
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.sync.client import connect

from dbt_incremental_dd.core.time import now
from tests.serve.serving import Served, serving
from tests.serve.users.people import bearer, write_users
from tests.subscribe.stored import Stored

Samples = dict[tuple[str, ...], float]


def scraped(served: Served, token: str = "") -> Samples:
    """Each sample's value by its name and labels."""
    answer = httpx.get(f"{served.url}/metrics", headers=bearer(token) if token else {})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found[(sample.name, *(value for _, value in sorted(sample.labels.items())))] = sample.value
    return found


def test_there_are_none_unless_they_are_asked_for(tmp_path: Path) -> None:
    Stored(tmp_path / "state")
    with serving(tmp_path / "state") as served:
        assert httpx.get(f"{served.url}/metrics").status_code == 404


def test_collections_and_accesses(tmp_path: Path) -> None:
    at = now() - 60_000
    Stored(tmp_path / "state").commit({at: Counter({(1, "a"): 1, (2, "b"): 2})}, at + 1)
    with serving(tmp_path / "state", metrics=True) as served:
        with connect(served.socket("/collections/kept/changes")) as web:
            web.recv(timeout=20)
            deadline = time.monotonic() + 10
            while (found := scraped(served)).get(("dbt_dd_collection_holds", "m.kept")) != 1:
                assert time.monotonic() < deadline
            assert found["dbt_dd_collection_followers", "m.kept"] == found["dbt_dd_subscriptions", "websocket"] == 1
            assert 60 <= found["dbt_dd_collection_hold_seconds", "m.kept"] < 100
        assert found["dbt_dd_collection_frontier_seconds", "m.kept"] == pytest.approx(at / 1000)
        assert 60 <= found["dbt_dd_collection_lag_seconds", "m.kept"] < 100
        assert found["dbt_dd_collection_updates", "m.kept"] == 2
        for path in ("/collections/kept/rows", "/collections/nosuch/rows", "/x" * 20):
            httpx.get(f"{served.url}{path}")
        httpx.post(f"{served.url}/sql", json={"statement": "select nosuch from kept"})
        with psycopg.connect(f"host=127.0.0.1 port={served.wire} user=me", autocommit=True) as connection:
            connection.execute("select * from kept").fetchall()
            with pytest.raises(psycopg.Error):
                connection.execute("select nosuch from kept")
        time.sleep(0.2)
        found = scraped(served)
    requests = {key[1:]: value for key, value in found.items() if key[0] == "dbt_dd_requests_total"}
    assert requests["rows", "http", "200"] == requests["rows", "http", "404"] == requests["sql", "http", "400"] == 1
    assert requests["sql", "postgres", "00000"] == requests["sql", "postgres", "42703"] == 1
    assert requests["page", "http", "404"] == 1 and requests["subscribe", "websocket", "101"] == 1
    assert found["dbt_dd_sent_rows_total", "rows", "http"] == found["dbt_dd_sent_rows_total", "sql", "postgres"] == 3
    assert found["dbt_dd_sent_bytes_total", "rows", "http"] > 50 and found["dbt_dd_subscriptions", "websocket"] == 0
    assert found["dbt_dd_request_seconds_count", "rows", "http"] == 2


def test_users_see_metrics_of_what_they_may_read(tmp_path: Path) -> None:
    for name in ("a.one", "a.two", "secret.pay"):
        Stored(tmp_path / "state", name=name).commit({10: Counter({(1, "a"): 1})}, 11)
    rows = "rows: {a.two: 'k = 1'}"
    users = write_users(
        tmp_path / "users.yml", ann=f"read: ['a.*'], {rows}, metrics: true", bob="read: ['*']", scraper="metrics: true"
    )
    with serving(tmp_path / "state", users=users, metrics=True) as served:
        found = scraped(served, "ann")
        assert {key[1] for key in found if key[0] == "dbt_dd_collection_lag_seconds"} == {"a.one", "a.two"}
        assert [key[1] for key in found if key[0] == "dbt_dd_collection_updates"] == ["a.one"]
        assert not any("secret" in part for key in found for part in key)
        assert not any(key[0].startswith("dbt_dd_collection") for key in scraped(served, "scraper"))
        assert httpx.get(f"{served.url}/metrics", headers=bearer("bob")).status_code == 403
        assert httpx.get(f"{served.url}/metrics").status_code == 401
