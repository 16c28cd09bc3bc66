"""Tokens of an issuer: of a real one, which signs with RSA and serves its keys over HTTP."""

from __future__ import annotations

import base64
import hmac
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import jwt
import psycopg
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.serve.users.users_file import read_users
from tests.serve.serving import Served, serving
from tests.serve.users.people import bearer
from tests.subscribe.stored import Stored


class Issuer:
    """Signs tokens. ``fetched``: how often its keys have been."""

    def __init__(self) -> None:
        self.keys = {"one": rsa.generate_private_key(65_537, 2048)}
        self.fetched = 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.fetched += self.path == "/keys"
                told: dict[str, Any] = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}
                body = json.dumps(issuer.public() if self.path == "/keys" else told).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def public(self) -> dict[str, Any]:
        keys = []
        for kid, key in self.keys.items():
            found = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
            keys.append({**found, "kid": kid, "use": "sig", "alg": "RS256"})
        return {"keys": keys}

    def claims(self, **claims: Any) -> dict[str, Any]:
        made = {"iss": self.url, "aud": "dbt-dd", "sub": "ann", "exp": int(time.time()) + 600, "groups": ["sales"]}
        return {name: value for name, value in {**made, **claims}.items() if value is not None}

    def token(self, kid: str = "one", key: Any = None, algorithm: str = "RS256", **claims: Any) -> str:
        signing = None if algorithm == "none" else key or self.keys["one"]
        return jwt.encode(self.claims(**claims), signing, algorithm, headers={"kid": kid})


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    yield made
    made.server.shutdown()


@pytest.fixture(scope="module")
def served(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("oidc")
    for name in ("a.kept", "b.kept"):
        Stored(folder / "state", name=name).commit({10: Counter({(1, "a"): 1, (2, "b"): 2})}, 11)
    (folder / "users.yml").write_text(
        f"oidc: {{issuer: '{issuer.url}', audience: dbt-dd}}\n"
        "roles:\n  sales: {read: ['a.*'], rows: {a.kept: k = 1}}\n  all: {read: ['*']}\n"
        "users:\n  eve: {subject: 'user|eve', read: ['b.*'], rows: {'*': k = 2}}\n"
    )
    with serving(folder / "state", users=folder / "users.yml") as found:
        yield found


def rows(served: Served, token: str, name: str = "a.kept") -> list[int] | int:
    answer = httpx.get(f"{served.url}/collections/{name}/rows", headers=bearer(token))
    return sorted(row["k"] for row in answer.json()["rows"]) if answer.status_code == 200 else answer.status_code


def test_groups_are_roles_and_a_subject_is_a_user(served: Served, issuer: Issuer) -> None:
    assert rows(served, issuer.token()) == [1] and rows(served, issuer.token(), "b.kept") == 404
    assert rows(served, issuer.token(groups=["sales", "all", 7])) == [1, 2, 2]
    eve = issuer.token(sub="user|eve", groups=None)
    assert rows(served, eve) == 404 and rows(served, eve, "b.kept") == [2, 2]
    # Conditions of the user's own limit what roles let read, too.
    assert rows(served, issuer.token(sub="user|eve", groups="all")) == [2, 2]
    with psycopg.connect(f"host=127.0.0.1 port={served.wire} user=x password={issuer.token()}") as connection:
        assert connection.execute("select k from kept").fetchall() == [(1,)]
    assert issuer.fetched == 1


def signed_by_the_public_key(issuer: Issuer) -> str:
    """As HS256, with the public key as its secret."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    secret = issuer.keys["one"].public_key().public_bytes(serialization.Encoding.PEM, form)

    def part(told: dict[str, Any]) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=")

    signed = part({"alg": "HS256", "kid": "one", "typ": "JWT"}) + b"." + part(issuer.claims())
    return (signed + b"." + base64.urlsafe_b64encode(hmac.digest(secret, signed, "sha256")).rstrip(b"=")).decode()


def test_what_is_refused(served: Served, issuer: Issuer) -> None:
    good = issuer.token()
    head, body, signature = good.split(".")
    other = base64.urlsafe_b64encode(json.dumps(issuer.claims(groups=["all"])).encode()).rstrip(b"=").decode()
    wrong = {
        "expired": issuer.token(exp=int(time.time()) - 10),
        "without an end": issuer.token(exp=None),
        "of later": issuer.token(nbf=int(time.time()) + 60),
        "for another audience": issuer.token(aud="other"),
        "for no audience": issuer.token(aud=None),
        "of another issuer": issuer.token(iss="https://other.example"),
        "of another key": issuer.token(key=rsa.generate_private_key(65_537, 2048)),
        "of an unknown key": issuer.token(kid="nobody"),
        "unsigned": issuer.token(algorithm="none"),
        "signed by the public key": signed_by_the_public_key(issuer),
        "of no group": issuer.token(groups=["strangers"]),
        "of nobody": issuer.token(sub=None),
        "changed": f"{head}.{other}.{signature}",
        "cut": f"{head}.{body}.",
        "nothing": "..",
        "no JSON": "a.b.c",
        "long": good + "x" * 20_000,
    }
    assert {why: rows(served, token) for why, token in wrong.items()} == dict.fromkeys(wrong, 401)
    assert rows(served, good) == [1]
    for _ in range(20):
        assert rows(served, issuer.token(kid="nobody")) == 401
    assert issuer.fetched <= 2


def test_a_stream_ends_with_its_token(served: Served, issuer: Issuer) -> None:
    token = issuer.token(exp=int(time.time()) + 3)
    url = f"{served.url}/collections/a.kept/changes"
    with httpx.stream("GET", url, headers=bearer(token), timeout=20) as answer:
        begin = time.monotonic()
        told = itertools.takewhile(lambda _: time.monotonic() < begin + 12, answer.iter_lines())
        lines = [line for line in told if line]
    assert lines[-2] == "event: failed" and time.monotonic() - begin < 8


WRONG = [
    ("{issuer: 'http://issuer.example', audience: x}", "is no https:// address"),
    ("{issuer: 'https://issuer.example'}", "oidc: it has no audience"),
    ("{issuer: 'https://issuer.example', audience: x, algorithms: [HS256]}", "HS256 is not allowed"),
    ("{issuer: 'https://issuer.example', audience: x, keys_url: 'file:///etc/keys'}", "is no https:// address"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_settings_that_are_wrong(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "users.yml").write_text(f"oidc: {text}\n")
    with pytest.raises(ConfigError, match=message):
        read_users(tmp_path / "users.yml")


def test_claims_in_objects_and_groups_that_are_called_otherwise(tmp_path: Path) -> None:
    (tmp_path / "users.yml").write_text(
        "oidc:\n  issuer: https://issuer.example\n  audience: x\n  name_claim: email\n"
        "  groups_claim: realm.roles\n  roles: {eu-sales: [sales, all]}\n"
        "roles:\n  sales: {read: ['a.*'], metrics: true}\n  all: {read: ['b.*']}\n"
    )
    users = read_users(tmp_path / "users.yml")
    found = users.of_claims({"email": "ann@example", "realm": {"roles": ["eu-sales", "sales"]}})
    assert found is not None and found.name == "ann@example" and found.metrics
    assert [found.rights.may_read(name) for name in ("a.x", "b.x", "c.x")] == [True, True, False]
    assert users.of_claims({"sub": "ann", "realm": {"roles": ["eu-sales"]}}) is None
    assert users.of_claims({"email": "ann@example", "realm": {"roles": ["sales"]}}) is None
