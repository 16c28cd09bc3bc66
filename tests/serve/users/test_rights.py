"""Random users with random rights ask everything that the server answers: what comes is exactly what they may read."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from websockets.sync.client import connect

from dbt_incremental_dd.serve.users.tokens import digest
from tests.serve.serving import Served, serving
from tests.serve.users.people import write_users
from tests.subscribe.stored import Rows, Stored

NAMES = ["a.one", "a.two", "b.one", "secret.pay", "c.other"]
Test = Callable[[int, str | None], bool]
CONDITIONS: dict[str, Test] = {
    "k % 2 = 0": lambda k, v: k % 2 == 0,
    "v = 'a' -- of a": lambda k, v: v == "a",
    "v <> 'b'": lambda k, v: v is not None and v != "b",
    "v IS NULL OR k > 3": lambda k, v: v is None or k > 3,
    "k IN (1, 2, 3)": lambda k, v: k in (1, 2, 3),
    "false": lambda k, v: False,
}
PATTERNS = ["a.*", "*.one", "a.two", "b.*", "c.?ther", "A.ONE"]
LAST = 30
AS_OF, UP_TO = "1970-01-01T00:00:00.010Z", "1970-01-01T00:00:00.031Z"


@dataclass
class Person:
    """``roles``: each with its patterns, and conditions by pattern."""

    token: str
    roles: list[tuple[list[str], dict[str, str]]]
    own: dict[str, str]

    def rows(self, name: str, all_rows: Rows) -> Rows | None:
        """What the person may read of a collection, computed without the server; None if it may not be read."""
        ways = []
        for patterns, rows in self.roles:
            if any(matches(name, pattern) for pattern in patterns):
                limits = [text for pattern, text in [*rows.items(), *self.own.items()] if matches(name, pattern)]
                ways.append([CONDITIONS[text] for text in limits])
        if not ways:
            return None
        return Counter({row: n for row, n in all_rows.items() if any(all(t(*row) for t in way) for way in ways)})


def matches(name: str, pattern: str) -> bool:
    """Patterns here have one star, or one question mark, or neither."""
    pattern = pattern.lower()
    if "?" in pattern:
        return len(name) == len(pattern) and all(one in ("?", other) for one, other in zip(pattern, name, strict=True))
    first, star, last = pattern.partition("*")
    return name.startswith(first) and name.endswith(last) if star else name == pattern


@dataclass
class World:
    """``contents``: of each collection as of 10 and as of 20."""

    served: Served
    people: list[Person]
    contents: dict[str, dict[int, Rows]]


def some_rows(chance: random.Random) -> Rows:
    made: Rows = Counter()
    for _ in range(8):
        made[chance.randrange(8), chance.choice(["a", "b", "c", None])] += chance.choice([1, 1, 2])
    return made


@pytest.fixture(scope="module", params=[1, 2])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    chance, folder = random.Random(request.param), tmp_path_factory.mktemp("rights")
    contents: dict[str, dict[int, Rows]] = {}
    for name in NAMES:
        stored, first, second = Stored(folder / "state", name=name), some_rows(chance), some_rows(chance)
        stored.commit({10: first}, 11)
        change = Counter(second)
        change.subtract(first)
        stored.commit({20: change}, LAST + 1)
        contents[name] = {10: first, 20: second}
    people, told = [], ["roles:"]
    for number in range(5):
        roles = []
        for _ in range(chance.choice([1, 1, 2])):
            rows = {chance.choice(PATTERNS): chance.choice(list(CONDITIONS)) for _ in range(chance.randrange(3))}
            roles.append((chance.sample(PATTERNS, chance.choice([1, 2])), rows))
        own = {chance.choice(PATTERNS): chance.choice(list(CONDITIONS))} if chance.random() < 0.3 else {}
        people.append(Person(f"token-{number}", roles, own))
    for number, person in enumerate(people):
        for at, (patterns, rows) in enumerate(person.roles):
            told.append(f"  r{number}{at}: {json.dumps({'read': patterns, 'rows': rows})}")
    told.append("users:")
    for number, person in enumerate(people):
        names = [f"r{number}{at}" for at in range(len(person.roles))]
        told.append(
            f"  u{number}: {json.dumps({'tokens': [digest(person.token)], 'roles': names, 'rows': person.own})}"
        )
    (folder / "users.yml").write_text("\n".join(told))
    with serving(folder / "state", users=folder / "users.yml") as served:
        yield World(served, people, contents)


def counted(rows: list[dict[str, Any]]) -> Rows:
    return Counter((row["k"], row["v"]) for row in rows)


def summed(messages: list[dict[str, Any]]) -> Rows:
    """What a client has after these messages."""
    found: Rows = Counter()
    for one in messages:
        found.update(counted(one["inserted"]))
        found.subtract(counted(one["deleted"]))
    return Counter({row: n for row, n in found.items() if n})


def test_http(world: World) -> None:
    for person in world.people:
        with httpx.Client(base_url=world.served.url, headers={"authorization": f"Bearer {person.token}"}) as client:
            http_of(world, person, client)


def http_of(world: World, person: Person, client: httpx.Client) -> None:
    readable = {name: person.rows(name, of[20]) for name, of in world.contents.items()}
    listed = client.get("/collections").json()
    assert [one["name"] for one in listed] == sorted(name for name, rows in readable.items() if rows is not None)
    with client.stream("GET", "/frontiers") as answer:
        lines = answer.iter_lines()
        if any(rows is not None for rows in readable.values()):
            event = json.loads(next(line for line in lines if line.startswith("data: ")).removeprefix("data: "))
            assert [one["name"] for one in event["collections"]] == [one["name"] for one in listed]
    shown = client.post(
        "/sql",
        json={
            "statement": "select table_schema || '.' || table_name as n from "
            "information_schema.tables where table_schema <> 'main'"
        },
    ).json()["rows"]
    assert sorted(row["n"] for row in shown) == [one["name"] for one in listed]
    for name, rows in readable.items():
        paths = [
            f"/collections/{name}{rest}" for rest in ("", "/rows", f"/rows?as_of={AS_OF}", f"/changes?up_to={UP_TO}")
        ]
        statements = [f"select * from {name}", f"with x as (select * from {name}) select k, v from x"]
        if rows is None:
            for path in paths:
                hidden, missing = client.get(path), client.get(path.replace(name, "no.such"))
                assert hidden.status_code == missing.status_code == 404
                assert hidden.text.replace(name, "no.such") == missing.text
            for sql in statements:
                hidden = client.post("/sql", json={"statement": sql})
                missing = client.post("/sql", json={"statement": sql.replace(name, "no.such")})
                assert hidden.status_code == missing.status_code == 400
                assert hidden.text.replace(name, "no.such") == missing.text
            continue
        for path, t in zip(paths[1:3], (20, 10), strict=True):
            assert counted(client.get(path).json()["rows"]) == person.rows(name, world.contents[name][t])
        for sql in (*statements, f"select a.* from {name} a semi join {name} b on a.k = b.k"):
            for at, t in (("", 20), (" as of 12", 10)):
                answer = client.post("/sql", json={"statement": sql + at})
                assert counted(answer.json()["rows"]) == person.rows(name, world.contents[name][t]), sql
        about = client.get(paths[0]).json()
        assert (about["rows"] is None and about["bytes"] is None) or rows == world.contents[name][20]
        assert streamed(client, paths[3]) == rows
        before = person.rows(name, world.contents[name][10])
        change = streamed(client, f"/collections/{name}/changes?up_to={UP_TO}&as_of={AS_OF}&snapshot=false")
        assert (before is not None and before + change - Counter() == rows) or all(
            before[row] + change[row] == rows[row] for row in {*before, *change, *rows}
        )
        only = streamed(client, f"/collections/{name}/changes?up_to={UP_TO}&where=k%3C4&select=k,v")
        assert only == Counter({row: n for row, n in rows.items() if row[0] < 4})
        url = world.served.socket(f"/collections/{name}/changes?up_to={UP_TO}&token={person.token}")
        with connect(url) as web:
            assert summed([json.loads(text) for text in web]) == rows


def streamed(client: httpx.Client, path: str) -> Rows:
    """What a stream that ends sums up to."""
    lines = client.get(path).text.splitlines()
    messages = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    return summed([one for one in messages if one])


def test_postgres(world: World) -> None:
    for person in world.people:
        dsn = f"host=127.0.0.1 port={world.served.wire} user=u dbname=dd password={person.token}"
        with psycopg.connect(dsn, autocommit=True) as connection:
            postgres_of(world, person, connection)


def postgres_of(world: World, person: Person, connection: psycopg.Connection[Any]) -> None:
    readable = {name: person.rows(name, of[20]) for name, of in world.contents.items()}
    visible = sorted(name for name, rows in readable.items() if rows is not None)
    for sql in (
        "select table_schema || '.' || table_name from information_schema.tables order by 1",
        "select nspname || '.' || relname from pg_class c join pg_namespace n on n.oid = c.relnamespace order by 1",
        "select distinct n.nspname || '.' || c.relname from pg_attribute a join pg_class c on c.oid = a.attrelid "
        "join pg_namespace n on n.oid = c.relnamespace order by 1",
    ):
        assert [row[0] for row in connection.execute(sql).fetchall()] == visible
    for name, rows in readable.items():
        statements = [f"select k, v from {name}", f"subscribe {name} up to 31", f"copy {name} to stdout"]
        if rows is None:
            assert connection.execute(f"select to_regclass('{name}')").fetchone() == (None,)
            for sql in statements:
                assert refusal(connection, sql).replace(name, "no.such") == refusal(
                    connection, sql.replace(name, "no.such")
                )
            continue
        assert Counter(connection.execute(statements[0]).fetchall()) == rows
        assert Counter(connection.execute(f"{statements[0]} as of 12").fetchall()) == person.rows(
            name, world.contents[name][10]
        )
        assert Counter(connection.execute(f"select * from ({statements[0]}) where k = %s", [3]).fetchall()) == Counter(
            {row: n for row, n in rows.items() if row[0] == 3}
        )
        for subscription in (f"subscribe {name} up to 31", f"subscribe (select v, k, k as j from {name}) up to 31"):
            found: Rows = Counter()
            for row in connection.execute(subscription).fetchall():
                k, v = row[2:] if len(row) == 4 else (row[3], row[2])
                found[k, v] += row[1]
            assert Counter({row: n for row, n in found.items() if n}) == rows


def refusal(connection: psycopg.Connection[Any], sql: str) -> str:
    with pytest.raises(psycopg.Error) as found:
        connection.execute(sql).fetchall()
    return f"{found.value.sqlstate} {found.value}"


def test_users_who_follow_together_get_their_own_rows(tmp_path: Path) -> None:
    """They share what is read of a collection, but nothing of what is made of it."""
    stored = Stored(tmp_path / "state")
    stored.commit({10: Counter({(1, "a"): 1, (2, "b"): 1})}, 11)
    users = write_users(
        tmp_path / "users.yml",
        ann="read: [m.*], rows: {m.*: v = 'a'}",
        bob="read: [m.*], rows: {m.*: v = 'b'}",
        all="read: [m.*]",
    )
    expected = {
        "ann": ([(1, "a")], {"inserted": [(2, "a")], "deleted": [(1, "a")]}),
        "bob": ([(2, "b")], {"inserted": [(1, "b")], "deleted": [(2, "b")]}),
        "all": ([(1, "a"), (2, "b")], {"inserted": [(1, "b"), (2, "a")], "deleted": [(1, "a"), (2, "b")]}),
    }
    with serving(tmp_path / "state", users=users) as served, contextlib.ExitStack() as stack:
        path = "/collections/kept/changes?token="
        webs = {name: stack.enter_context(connect(served.socket(path + name))) for name in [*expected, "ann"]}
        wires = {
            name: stack.enter_context(psycopg.connect(f"host=127.0.0.1 port={served.wire} user=u password={name}"))
            for name in expected
        }
        for name, wire in wires.items():
            wire.execute("declare c cursor for subscribe kept")
            rows = wire.execute("fetch all c with (timeout = '10s')").fetchall()
            assert sorted(row[2:] for row in rows) == expected[name][0]
        for name, web in webs.items():
            assert sorted(counted(json.loads(web.recv(timeout=20))["inserted"])) == expected[name][0]
        stored.commit({20: Counter({(1, "a"): -1, (1, "b"): 1, (2, "b"): -1, (2, "a"): 1})}, 21)
        for name, web in webs.items():
            told = json.loads(web.recv(timeout=20))
            assert {part: sorted(counted(told[part])) for part in ("inserted", "deleted")} == expected[name][1]
        for name, wire in wires.items():
            rows = wire.execute("fetch all c with (timeout = '10s')").fetchall()
            for sign, part in ((1, "inserted"), (-1, "deleted")):
                assert sorted(row[2:] for row in rows if row[1] == sign) == expected[name][1][part]
