"""The file of users: what is wrong with it is told with its line; it is read again when it changes."""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from dbt_incremental_dd.cli import main
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.serve.server import ServerOptions
from dbt_incremental_dd.serve.users.tokens import digest, new_token
from dbt_incremental_dd.serve.users.users_file import read_users
from tests.serve.serving import Served, serving
from tests.serve.users.people import bearer, write_users
from tests.subscribe.stored import Stored

ONE, TWO = digest("one"), digest("two")
WRONG = [
    ("", "is empty"),
    ("users: [", "line 1: this is no YAML"),
    ("users:\n  ann: {}\n", "line 2: users.ann: it has no tokens"),
    ("users:\n  ann: {tokens: [secret]}\n", "line 2: users.ann.tokens: a token is given as its digest"),
    (f"users:\n  ann: {{tokens: {ONE}}}\n  bob: {{tokens: {ONE}}}\n", "line 3: users.bob: ann has the same token"),
    (f"users:\n  ann: {{tokens: {ONE}}}\n  ann: {{tokens: {TWO}}}\n", "line 3: users: ann is given twice"),
    (f"users:\n  ann:\n    tokens: {ONE}\n    reads: ['*']\n", "line 4: users.ann.reads: reads is no setting"),
    (f"users:\n  ann:\n    tokens: {ONE}\n    roles: [x]\n", "line 3: users.ann: there is no role x"),
    (f"users:\n  ann:\n    tokens: {ONE}\n    metrics: perhaps\n", "line 4: users.ann.metrics: perhaps is neither"),
    ("roles:\n  eu:\n    rows: {a: 'k = 1'}\n", "line 3: roles.eu: it has rows, and lets read nothing"),
    ("people: {}\n", "line 1: people: people is no setting"),
    ("users: [ann]\n", "line 1: users: a mapping"),
]
CONDITIONS = [
    *(
        "k = (select max(k) from other)",
        "k in (select 1)",
        "random() > 0.5",
        "k = 1) or (1 = 1",
        "sum(k) > 1",
    ),
    *(
        "getenv('HOME') = 'x'",
        "true from other",
        "k =",
        "k = 1; select 1",
        "k > 0 union select 1",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "users.yml"
    path.write_text(text)
    with pytest.raises(ConfigError) as found:
        read_users(path)
    assert message in str(found.value) and "users.yml" in str(found.value)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_that_are_refused(tmp_path: Path, condition: str) -> None:
    path = tmp_path / "users.yml"
    path.write_text(f"users:\n  ann:\n    tokens: {ONE}\n    rows:\n      a.b: |-\n        {condition}\n")
    with pytest.raises(ConfigError, match=r"line 5: users.ann.rows.a.b: the condition on rows is wrong"):
        read_users(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nobody.yml cannot be read"):
        read_users(tmp_path / "nobody.yml")


def test_conditions_on_collections_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "users.yml"
    path.write_text(
        "roles:\n  eu: {read: ['*'], rows: {'sales.*': k = 1, sales.order: k = 1}}\n"
        f"users:\n  ann: {{tokens: {ONE}, roles: [eu], rows: {{'other.?': k = 2}}}}\n"
    )
    assert read_users(path).unmatched(["sales.orders"]) == ["other.?", "sales.order"]
    Stored(tmp_path / "state")
    told: list[str] = []
    with serving(tmp_path / "state", users=path, report=told.append):
        pass
    assert sum("WARNING: users.yml: there is no collection" in line for line in told) == 3, told


def test_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token"]) == 0
    (_, token), (_, told) = (line.split() for line in capsys.readouterr().out.splitlines())
    assert digest(token) == told and len(token) == 43 and token != new_token()


def test_users_on_a_public_host_need_tls(tmp_path: Path) -> None:
    path = write_users(tmp_path / "users.yml", ann="read: ['*']")
    with pytest.raises(ConfigError, match="--tls-cert"):
        ServerOptions("0.0.0.0", users=path)
    assert ServerOptions("0.0.0.0", users=path, behind_proxy=True).behind_proxy


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    made = Stored(tmp_path / "state")
    made.commit({10: Counter({(1, "a"): 1, (2, "b"): 2})}, 11)
    return made


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def served(tmp_path: Path, stored: Stored, told: list[str]) -> Iterator[Served]:
    path = write_users(tmp_path / "users.yml", ann="read: ['*']", bob="read: ['m.*']", eve="metrics: true")
    with serving(tmp_path / "state", "the-owner", users=path, report=told.append) as found:
        yield found


def names(served: Served, token: str) -> list[str] | int:
    answer = httpx.get(f"{served.url}/collections", headers=bearer(token))
    return [one["name"] for one in answer.json()] if answer.status_code == 200 else answer.status_code


def test_who_is_let_in(served: Served) -> None:
    assert [names(served, one) for one in ("ann", "bob", "eve", "the-owner")] == [
        ["m.kept"],
        ["m.kept"],
        [],
        ["m.kept"],
    ]
    for token in ("x", "mallory", digest("ann"), "ANN", "ann\u00e9", "Bearer ann", "\ud800"):
        header = {"authorization": f"Bearer {token}".encode("utf-8", "surrogatepass")}
        assert httpx.get(f"{served.url}/collections", headers=header).status_code == 401
    assert httpx.get(f"{served.url}/collections").status_code == 401
    answer = httpx.get(f"{served.url}/?token=bob")
    assert answer.cookies["dbt_dd_token"] == "bob"
    assert "set-cookie" not in httpx.get(f"{served.url}/?token=mallory", headers=bearer("bob")).headers


def test_a_token_that_is_withdrawn_ends_what_it_does(served: Served, tmp_path: Path, told: list[str]) -> None:
    dsn = f"host=127.0.0.1 port={served.wire} user=bob dbname=dd password="
    url = f"{served.url}/collections/m.kept/changes"
    with (
        httpx.stream("GET", url, headers=bearer("bob"), timeout=20) as events,
        httpx.stream("GET", url, headers=bearer("ann"), timeout=20) as others,
        connect(served.socket("/collections/m.kept/changes?token=bob")) as web,
        psycopg.connect(dsn + "bob", autocommit=True) as session,
        psycopg.connect(dsn + "ann", autocommit=True) as other,
    ):
        lines, kept = events.iter_lines(), others.iter_lines()
        assert next(line for line in lines if line.startswith("data:")) and next(kept)
        assert web.recv(timeout=20) and session.execute("select count(*) from kept").fetchone() == (3,)
        write_users(tmp_path / "users.yml", ann="read: ['*']", bob="read: ['other.*']")
        begin = time.monotonic()
        rest = [line for line in itertools.takewhile(lambda _: time.monotonic() < begin + 12, lines) if line]
        assert rest[-2] == "event: failed"
        with pytest.raises(ConnectionClosed):
            while "not valid any more" not in str(web.recv(timeout=20)):
                pass
            web.recv(timeout=20)
        with pytest.raises(psycopg.OperationalError):
            for _ in range(100):
                session.execute("select 1")
                time.sleep(0.1)
        assert time.monotonic() - begin < 8
        assert other.execute("select count(*) from kept").fetchone() == (3,) and names(served, "bob") == []
    assert names(served, "eve") == 401 and "users.yml read again" in told
    # A file that is wrong, or gone, changes nothing.
    for damage in (lambda path: path.write_text("users: [\n"), lambda path: path.unlink()):
        damage(tmp_path / "users.yml")
        time.sleep(1.5)
        assert names(served, "ann") == ["m.kept"] and "stays in force" in told[-1]
    with psycopg.connect(dsn + "ann") as session, pytest.raises(psycopg.OperationalError, match="password auth"):
        assert session.execute("select count(*) from kept").fetchone() == (3,)
        psycopg.connect(dsn + "eve")


def test_users_at_the_start_have_to_be_right(
    tmp_path: Path, stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "users.yml").write_text("users:\n  ann: {}\n")
    state = ["--state-root", str(tmp_path / "state")]
    assert main([*state, "serve", "--port", "0", "--users", os.fspath(tmp_path / "users.yml")]) == 1
    assert "line 2: users.ann: it has no tokens" in capsys.readouterr().err
