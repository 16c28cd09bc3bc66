"""TLS by HTTP and the Postgres protocol."""

from __future__ import annotations

import datetime
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.sync.client import connect

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.serve.tls import server_context
from tests.serve.serving import Served, serving
from tests.serve.users.people import bearer, write_users
from tests.subscribe.stored import Stored


def certify(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate of localhost that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(begin)
    made = made.not_valid_after(begin + datetime.timedelta(days=36_500)).add_extension(names, critical=False)
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "cert.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
    (folder / "key.pem").write_bytes(secret)
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    Stored(tmp_path / "state").commit({10: Counter({(1, "a"): 1, (2, "b"): 2})}, 11)
    users = write_users(tmp_path / "users.yml", ann="read: ['*']")
    with serving(tmp_path / "state", users=users, tls=certify(tmp_path, "first")) as found:
        yield found


def test_http_and_web_sockets(served: Served, tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    url = f"https://localhost:{served.port}"
    assert httpx.get(f"{url}/collections", headers=bearer("ann"), verify=context).json()[0]["name"] == "m.kept"
    assert "Secure" in httpx.get(f"{url}/?token=ann", verify=context).headers["set-cookie"]
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://localhost:{served.port}/collections", headers=bearer("ann"))
    with connect(f"wss://localhost:{served.port}/collections/kept/changes?token=ann", ssl=context) as web:
        assert '"inserted"' in str(web.recv(timeout=20))


def test_the_postgres_protocol(served: Served, tmp_path: Path) -> None:
    dsn = f"host=localhost port={served.wire} user=ann dbname=dd password=ann connect_timeout=10 "
    secure = f"{dsn} sslmode=verify-full sslrootcert={tmp_path / 'cert.pem'}"
    with psycopg.connect(secure, autocommit=True) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("select count(*) from kept").fetchone() == (3,)
        rows = connection.execute("select repeat('x', 1000) as x from range(20000)").fetchall()
        assert len(rows) == 20_000
    with pytest.raises(psycopg.OperationalError, match="no connections without TLS"):
        psycopg.connect(f"{dsn} sslmode=disable")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(secure.replace("password=ann", "password=bob"))


def test_what_is_sent_before_tls_is_not_read(served: Served) -> None:
    """Somebody on the way could have sent it."""
    with socket.create_connection(("127.0.0.1", served.wire), 10) as plain:
        startup = struct.pack("!i", 196_608) + b"user\0mallory\0\0"
        ahead = struct.pack("!i", len(startup) + 4) + startup
        plain.sendall(struct.pack("!ii", 8, (1234 << 16) | 5679))
        assert plain.recv(1) == b"S"
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(plain, server_hostname="localhost") as secure:
            secure.sendall(ahead.replace(b"mallory", b"annette"))
            assert secure.recv(1) == b"R"
    with socket.create_connection(("127.0.0.1", served.wire), 10) as plain:
        plain.sendall(struct.pack("!ii", 8, (1234 << 16) | 5679) + ahead)
        assert plain.recv(1) == b"S"
        plain.settimeout(1)
        with pytest.raises(TimeoutError):  # the server waits for a handshake, and answers nothing else
            plain.recv(1)


def test_a_renewed_certificate(served: Served, tmp_path: Path) -> None:
    def subject() -> str:
        found = ssl.get_server_certificate(("localhost", served.port), timeout=10)
        return x509.load_pem_x509_certificate(found.encode()).subject.rfc4514_string()

    assert subject() == "CN=first"
    (tmp_path / "key.pem").write_text("no key")
    time.sleep(1.3)
    assert subject() == "CN=first"
    certify(tmp_path, "second")
    deadline = time.monotonic() + 10
    while subject() != "CN=second":
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_files_that_are_no_certificate(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="are no certificate and its key"):
        server_context(tmp_path / "cert.pem", tmp_path / "key.pem", print)
    certificate, key = certify(tmp_path, "one")
    key.write_bytes(certify(tmp_path, "other")[0].read_bytes())
    with pytest.raises(ConfigError, match="are no certificate and its key"):
        server_context(certificate, key, print)
