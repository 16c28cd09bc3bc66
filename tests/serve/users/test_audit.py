"""The audit log."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from websockets.sync.client import connect

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.serve.audit import AuditLog
from dbt_incremental_dd.serve.usage import Usage
from tests.serve.serving import serving
from tests.serve.users.people import bearer, write_users
from tests.subscribe.stored import Stored

UP_TO = "1970-01-01T00:00:00.011Z"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_access_is_a_line(tmp_path: Path) -> None:
    Stored(tmp_path / "state").commit({10: Counter({(1, "a"): 1, (2, "b"): 2})}, 11)
    users, log = write_users(tmp_path / "users.yml", tok_ann="read: ['*']"), tmp_path / "audit.jsonl"
    begin = time.time() * 1000
    with serving(tmp_path / "state", users=users, audit=log) as served:
        with httpx.Client(base_url=served.url, headers=bearer("tok_ann")) as client:
            client.get("/")
            client.get("/collections")
            client.get("/collections/kept/rows?k=2")
            client.post("/sql", json={"statement": "select nosuch from kept"})
            client.get("/collections/secret/rows")
            client.get(f"/collections/kept/changes?up_to={UP_TO}")
        httpx.get(f"{served.url}/collections/kept/rows?token=wrong-secret")
        with connect(served.socket(f"/collections/kept/changes?up_to={UP_TO}&token=tok_ann")) as web:
            web.recv(timeout=20)
        dsn = f"host=127.0.0.1 port={served.wire} user=me password="
        with psycopg.connect(f"{dsn}tok_ann", autocommit=True) as connection:
            connection.execute("select * from kept where k = %s", [2])
            connection.execute("subscribe kept up to 11").fetchall()
            with pytest.raises(psycopg.Error):
                connection.execute("select 1 from nosuch")
        with pytest.raises(psycopg.Error):
            psycopg.connect(f"{dsn}wrong-secret")
        (log.parent / "rotated").unlink(missing_ok=True)
        time.sleep(0.2)
        log.rename(tmp_path / "rotated")
        httpx.get(f"{served.url}/collections/kept", headers=bearer("tok_ann"))
    assert [one["action"] for one in lines_of(log)] == ["describe"]
    found = lines_of(tmp_path / "rotated")
    assert (
        "wrong-secret" not in (tmp_path / "rotated").read_text() and "token=" not in (tmp_path / "rotated").read_text()
    )
    told = [
        (one["user"], one["protocol"], one["event"], one["action"], one.get("status"), one.get("rows")) for one in found
    ]
    ann, http, wire = "tok_ann", ("tok_ann", "http"), ("tok_ann", "postgres")
    assert told[:6] == [
        (*http, "end", "list", "200", 0),
        (*http, "end", "rows", "200", 2),
        (*http, "end", "sql", "400", 0),
        (*http, "end", "rows", "404", 0),
        (*http, "begin", "subscribe", None, None),
        (*http, "end", "subscribe", "200", 2),
    ]
    assert told[6] == ("", "http", "end", "refused", "401", 0)
    assert (
        sorted(told[7:9])
        == [
            (ann, "websocket", "begin", "subscribe", None, None),
            (ann, "websocket", "end", "subscribe", "101", 2),
        ]
        or told[7][1] == "websocket"
    )
    pg = [one for one in told if one[1] == "postgres"]
    assert pg == [
        (*wire, "end", "connect", "00000", 0),
        (*wire, "end", "sql", "00000", 2),
        (*wire, "begin", "subscribe", None, None),
        (*wire, "end", "subscribe", "00000", 2),
        (*wire, "end", "sql", "42P01", 0),
        ("me", "postgres", "end", "connect", "28P01", 0),
    ]
    assert all(begin - 1 <= one["time"] <= time.time() * 1000 and ":" in one["peer"] for one in found)
    assert found[1]["as_of"] == 10 and found[1]["collection"] == "m.kept" and found[1]["bytes"] > 20
    assert found[3]["collection"] == "secret" and found[-3]["collection"] == "m.kept"
    assert [one["as_of"] for one in found if one["action"] == "sql" and one["rows"]] == [10]
    assert found[2]["sql"] == "select nosuch from kept"


def test_a_log_that_cannot_be_written_is_reported_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        AuditLog(tmp_path / "no" / "audit.jsonl", print)
    told: list[str] = []
    log = AuditLog(tmp_path / "audit.jsonl", told.append)
    (tmp_path / "audit.jsonl").unlink()
    (tmp_path / "audit.jsonl").mkdir()
    for _ in range(3):
        log.ended(Usage("http", "ann", "here", "list"))
    log.close()
    assert len(told) == 1 and "cannot be written" in told[0]
