"""psql, as its users type it."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.serve.pgwire.conftest import Server
from tests.subscribe.stored import Stored

pytestmark = pytest.mark.skipif(
    shutil.which("psql") is None and os.environ.get("CI") != "true", reason="there is no psql"
)


def psql(server: Server, *commands: str, token: str = "") -> str:
    """What it prints: rows without headers, errors as well."""
    typed = [part for command in commands for part in ("-c", command)]
    environment = {**os.environ, "PGPASSWORD": token, "PGCONNECT_TIMEOUT": "5"}
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", "-w", server.dsn, *typed],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout + done.stderr


def test_statements(server: Server) -> None:
    assert psql(server, "select * from kept order by k") == "1|a\n2|b\n3|\n"
    told = psql(server, "begin", "declare c cursor for subscribe kept as of 10 up to 21", "fetch all c", "commit")
    assert sorted(told.splitlines()) == [
        "10|1|1|a",
        "10|2|2|b",
        "20|-1|2|b",
        "20|1|3|",
        "BEGIN",
        "COMMIT",
        "DECLARE CURSOR",
    ]
    assert psql(server, "copy (subscribe kept as of 20 up to 31) to stdout").splitlines()[-1] == "20\t1\t3\t\\N"
    told = psql(server, "insert into kept values (1)", "selec")
    assert "HINT:  SELECT or SUBSCRIBE." in told and 'syntax error at or near "selec"' in told


def test_lists(server: Server) -> None:
    for command in (r"\dt", r"\d", r"\dt m.*", r"\dt *.kept"):
        assert psql(server, command) == "m|kept|table|reader\n", command
    assert psql(server, r"\dv") == "Did not find any relations.\n"
    assert psql(server, r"\dn") == "m|reader\npublic|reader\n"
    assert psql(server, r"\l").startswith("dd|reader|UTF8|")
    assert f'port "{server.port}"' in psql(server, r"\conninfo")
    assert 'Did not find any relation named "nosuch"' in psql(server, r"\d nosuch")


def test_what_a_collection_is(server: Server, stored: Stored) -> None:
    for command in (r"\d kept", r"\d m.kept", r"\d m.k*"):
        assert psql(server, command) == "k|bigint|||\nv|text|||\n", command
    assert "k|bigint" in psql(server, r"\d+ kept")
    stored.place.remove()
    assert "Did not find any relation" in psql(server, r"\d kept")


def test_tokens(stored: Stored) -> None:
    server = Server(stored, "sesame")
    try:
        assert psql(server, "select 1", token="sesame") == "1\n"
        assert "password authentication failed" in psql(server, "select 1", token="no")
    finally:
        server.close()
