"""Frames as they are: how connections begin and end, the extended protocol, and clients that break the rules."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from dbt_incremental_dd.serve.pgwire import connection as connections
from dbt_incremental_dd.serve.write_timeout import WriteTimeout
from tests.serve.pgwire.conftest import Server, eventually
from tests.subscribe.stored import Stored

SLOW = b"select count(*) from range(1000000) a, range(1000000) b where a.range * b.range % 7 = 3"
SSL, GSS, CANCEL = 80877103, 80877104, 80877102


class Raw:
    """A client that says exactly what it is told to."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=10)

    def startup(self, code: int = 196608, body: bytes = b"user\0raw\0\0") -> None:
        self.socket.sendall(struct.pack("!ii", len(body) + 8, code) + body)

    def say(self, *frames: tuple[bytes, bytes]) -> None:
        self.socket.sendall(b"".join(kind + struct.pack("!i", len(body) + 4) + body for kind, body in frames))

    def hear(self) -> tuple[bytes, bytes]:
        kind, size = struct.unpack("!ci", self._bytes(5))
        return kind, self._bytes(size - 4)

    def hear_until(self, kind: bytes = b"Z") -> list[tuple[bytes, bytes]]:
        found = [self.hear()]
        while found[-1][0] != kind:
            found.append(self.hear())
        return found

    def is_closed(self) -> bool:
        return self.socket.recv(1) == b""

    def _bytes(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = self.socket.recv(size - len(found))
            if not more:
                raise EOFError
            found += more
        return found


@pytest.fixture
def unknown(server: Server) -> Iterator[Raw]:
    made = Raw(server)
    yield made
    made.socket.close()


@pytest.fixture
def raw(unknown: Raw) -> Raw:
    unknown.startup()
    unknown.hear_until()
    return unknown


def kinds(frames: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(kind for kind, _ in frames)


def state(body: bytes) -> str:
    """The SQLSTATE of an error."""
    return next(field[1:].decode() for field in body.split(b"\0") if field[:1] == b"C")


def parse(sql: str, name: str = "", *oids: int) -> tuple[bytes, bytes]:
    body = f"{name}\0{sql}\0".encode() + struct.pack("!h", len(oids))
    return b"P", body + b"".join(struct.pack("!i", oid) for oid in oids)


def bind(
    portal: str = "", name: str = "", values: tuple[bytes | None, ...] = (), code: int = 0, result: int = 0
) -> tuple[bytes, bytes]:
    body = f"{portal}\0{name}\0".encode() + struct.pack("!hhh", 1, code, len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return b"B", body + struct.pack("!hh", 1, result)


def execute(portal: str = "", limit: int = 0) -> tuple[bytes, bytes]:
    return b"E", f"{portal}\0".encode() + struct.pack("!i", limit)


SYNC, FLUSH = (b"S", b""), (b"H", b"")


def test_how_a_connection_begins(unknown: Raw) -> None:
    for code in (SSL, GSS):
        unknown.startup(code, b"")
        assert unknown.socket.recv(1) == b"N"
    unknown.startup(196608, b"user\0raw\0application_name\0it\0\0")
    frames = unknown.hear_until()
    assert kinds(frames) == b"RSSSSSSSSKZ"
    assert frames[0] == (b"R", b"\0\0\0\0") and frames[-1] == (b"Z", b"I") and frames[-2][0] == b"K"
    told = dict(body.split(b"\0")[:2] for kind, body in frames if kind == b"S")
    assert told[b"server_version"].startswith(b"15.0 (dbt-incremental-dd ")
    assert told[b"client_encoding"] == told[b"server_encoding"] == b"UTF8" and told[b"TimeZone"] == b"UTC"
    assert told[b"DateStyle"].startswith(b"ISO") and told[b"integer_datetimes"] == b"on"
    assert told[b"standard_conforming_strings"] == b"on"
    unknown.say((b"X", b""))
    assert unknown.is_closed()


def test_newer_clients_are_told_what_is_spoken(unknown: Raw) -> None:
    unknown.startup(196610, b"user\0raw\0_pq_.more\0on\0\0")
    assert unknown.hear() == (b"v", struct.pack("!ii", 196608, 1) + b"_pq_.more\0")
    assert unknown.hear_until()[-1] == (b"Z", b"I")


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (struct.pack("!ii", 20_000, 196608), "08P01"),
        (struct.pack("!ii", 4, 0), "08P01"),
        (struct.pack("!ii", -5, 196608), "08P01"),
        (struct.pack("!ii", 9, 196608) + b"\0", "28000"),
        (struct.pack("!ii", 8, 131072), "0A000"),
        (struct.pack("!ii", 12, 196608) + b"user", "08P01"),
        (struct.pack("!ii", 15, 196608) + b"user\0\xff\0", "08P01"),
        (struct.pack("!ii", 12, CANCEL) + b"oops", "08P01"),
        (b"GET / HTTP/1.1\r\n\r\n", "08P01"),
    ],
)
def test_packets_that_begin_nothing(unknown: Raw, server: Server, packet: bytes, code: str) -> None:
    unknown.socket.sendall(packet)
    kind, body = unknown.hear()
    assert kind == b"E" and b"SFATAL\0" in body and state(body) == code
    assert unknown.is_closed()
    with server.connect() as other:
        assert other.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "frame",
    [
        b"Q\x7f\xff\xff\xff",
        b"Q\0\0\0\x01",
        b"Q\0\0\0\x08abcd",
        b"Q\0\0\0\x06\xff\0",
        b"Q\0\0\0\x0aselect",
        b"Q\0\0\0\x07\0ab",
        b"?\0\0\0\x04",
        b"F\0\0\0\x04",
        b"P\0\0\0\x08\0\0\0\x05",
        b"B\0\0\0\x0a\0\0\xff\xff\0\0",
        b"B\0\0\0\x10\0\0\0\0\0\x01\0\0\xff\0\0\0",
        b"E\0\0\0\x05\0",
        b"D\0\0\0\x04",
        b"S\0\0\0\x05x",
    ],
)
def test_frames_that_break_the_rules(raw: Raw, server: Server, frame: bytes) -> None:
    with server.connect() as other:
        raw.socket.sendall(frame)
        kind, body = raw.hear()
        assert kind == b"E" and b"SFATAL\0" in body and state(body) == "08P01"
        assert raw.is_closed()
        assert eventually(lambda: server.connections == 1)
        assert other.execute("select count(*) from kept").fetchone() == (3,)


def test_a_broken_frame_ends_what_is_being_streamed(raw: Raw, server: Server) -> None:
    raw.say((b"Q", b"subscribe kept\0"))
    assert kinds([raw.hear() for _ in range(4)]) == b"TDDD"
    raw.say((b"?", b""))
    assert raw.hear()[0] == b"E" and raw.is_closed()
    assert eventually(lambda: server.hub.followers == {})


def test_tokens(stored: Stored) -> None:
    server = Server(stored, "sesame öffne dich")
    try:
        with server.connect(password="sesame öffne dich") as connection:
            for wrong, code in (("sesame", "28P01"), ("", "28P01"), ("x" * 5000, "28P01"), ("x" * 20_000, "08P01")):
                raw = Raw(server)
                raw.startup()
                assert raw.hear() == (b"R", b"\0\0\0\3")
                raw.say((b"p", wrong.encode() + b"\0"))
                kind, body = raw.hear()
                assert kind == b"E" and state(body) == code
            with pytest.raises(psycopg.OperationalError, match="password"):
                server.connect()
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                server.connect(password="no")
            raw = Raw(server)
            raw.startup()
            raw.hear()
            raw.say((b"Q", b"select 1\0"))
            assert state(raw.hear()[1]) == "08P01" and raw.is_closed()
            assert connection.execute("select max(k) from kept").fetchone() == (3,)
    finally:
        server.close()


def test_who_says_nothing_is_sent_away(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STARTUP_SECONDS", 0.2)
    raw = Raw(server)
    assert raw.is_closed()


def test_row_limits(raw: Raw) -> None:
    raw.say((b"Q", b"begin\0"))
    assert raw.hear_until()[-1] == (b"Z", b"T")
    raw.say(parse("select i from range(5) t(i)"), bind("p"), execute("p", 2), FLUSH)
    assert kinds([raw.hear() for _ in range(5)]) == b"12DDs"
    raw.say(execute("p", 2), execute("p", 2), SYNC)
    frames = raw.hear_until()
    assert kinds(frames) == b"DDsDCZ" and frames[4][1] == b"SELECT 1\0"
    raw.say(execute("p", 2), (b"C", b"Pp\0"), (b"C", b"Pp\0"), SYNC)
    assert kinds(raw.hear_until()) == b"C33Z"
    raw.say(bind("q"), SYNC, execute("q", 1), SYNC)
    assert kinds(raw.hear_until()) == b"2Z" and kinds(raw.hear_until()) == b"DsZ"
    raw.say((b"Q", b"commit\0"), execute("q", 1), SYNC)
    assert kinds(raw.hear_until()) == b"CZ"
    frames = raw.hear_until()
    assert kinds(frames) == b"EZ" and state(frames[0][1]) == "34000"


def test_descriptions(raw: Raw) -> None:
    raw.say(parse('select k, v as "Ünïcode", $1, $2::int from kept where k = $3', "s", 0, 0, 20), (b"D", b"Ss\0"), SYNC)
    frames = raw.hear_until()
    assert kinds(frames) == b"1tTZ" and frames[1][1] == struct.pack("!hiii", 3, 25, 23, 20)
    count, rest = struct.unpack("!h", frames[2][1][:2])[0], frames[2][1][2:]
    columns = []
    for _ in range(count):
        name, _, rest = rest.partition(b"\0")
        columns.append((name.decode(), *struct.unpack("!ihihih", rest[:18])))
        rest = rest[18:]
    assert [column[0] for column in columns[:2]] == ["k", "Ünïcode"] and rest == b""
    assert [column[3] for column in columns] == [20, 25, 25, 23]
    raw.say(bind("", "s", (b"x", b"7", b"\0\0\0\0\0\0\0\x01"), 0, 1), SYNC)
    assert state(raw.hear_until()[0][1]) == "22021"
    raw.say(bind("", "s", (b"x", b"7", b"1"), 0, 1), (b"D", b"P\0"), execute(), SYNC)
    frames = raw.hear_until()
    assert kinds(frames) == b"2TDCZ"
    assert frames[2][1] == b"\0\4" + b"\0\0\0\x08" + struct.pack("!q", 1) + b"\0\0\0\1a\0\0\0\1x\0\0\0\4\0\0\0\7"
    raw.say(parse("begin", "b"), (b"D", b"Sb\0"), parse("fetch 1 c", "f"), (b"D", b"Sf\0"), SYNC)
    frames = raw.hear_until()
    assert kinds(frames) == b"1tn1EZ" and state(frames[4][1]) == "34000"
    raw.say(parse("subscribe kept", "u"), (b"D", b"Su\0"), parse("show search_path", "h"), (b"D", b"Sh\0"), SYNC)
    frames = raw.hear_until()
    assert kinds(frames) == b"1tT1tTZ" and b"mz_diff" in frames[2][1] and b"search_path" in frames[5][1]


def test_errors_skip_what_comes_before_the_next_sync(raw: Raw) -> None:
    raw.say(parse("select nosuch"), bind(), execute(), parse("select 1"), bind(), execute(), SYNC)
    frames = raw.hear_until()
    assert kinds(frames) == b"12EZ" and state(frames[2][1]) == "42703"
    wrong = [
        ([parse("select 1; select 2")], "42601"),
        ([bind("", "nosuch")], "26000"),
        ([execute("nosuch")], "34000"),
        ([parse("select $1"), bind()], "08P01"),
        ([parse("select $1::int", "", 23), bind("", "", (b"\0\1",), 1)], "22P03"),
        ([parse("select $1", "", 600), bind("", "", (b"\0\1",), 1)], "0A000"),
        ([parse("select $1"), bind("", "", (b"\xff",))], "22021"),
        ([parse("select $1"), bind("", "", (b"x",), 7)], "08P01"),
        ([parse("select 1", "twice"), parse("select 1", "twice")], "42P05"),
        ([parse("select 1"), (b"B", b"\0\0\0\0\0\0\0\2\0\0\0\0"), execute()], "08P01"),
    ]
    for frames_said, code in wrong:
        raw.say(*frames_said, execute(), SYNC)
        frames = raw.hear_until()
        assert kinds(frames)[-2:] == b"EZ" and state(frames[-2][1]) == code, code
        assert frames[-1][1] == b"I"


def test_empty_statements(raw: Raw) -> None:
    raw.say((b"Q", b" -- nothing\0"))
    assert kinds(raw.hear_until()) == b"IZ"
    raw.say(parse(""), bind(), (b"D", b"P\0"), execute(), SYNC)
    assert kinds(raw.hear_until()) == b"12nIZ"
    raw.say((b"Q", b"select from_hex('') where false\0"))
    assert kinds(raw.hear_until()) == b"TCZ"


def test_statements_are_canceled_by_their_key_alone(server: Server) -> None:
    with server.connect() as waiting:
        waiting.pgconn.send_query(b"subscribe kept")
        assert eventually(lambda: server.hub.followers == {"m.kept": 1})
        for key in ((waiting.info.backend_pid, 12345), (99999, 12345)):
            raw = Raw(server)
            raw.startup(CANCEL, struct.pack("!II", *key))
            assert raw.is_closed()
        time.sleep(0.1)
        assert server.hub.followers == {"m.kept": 1}
        waiting.cancel_safe()
        assert eventually(lambda: server.hub.followers == {})
        waiting.pgconn.finish()


def test_a_select_is_canceled(server: Server) -> None:
    with server.connect() as connection:
        began = time.monotonic()
        threading.Timer(0.3, connection.cancel_safe).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(SLOW)
        assert 0.3 <= time.monotonic() - began < 5
        connection.cancel_safe()
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_select_whose_client_goes_is_ended(server: Server) -> None:
    connection = server.connect()
    connection.pgconn.send_query(SLOW)
    time.sleep(0.2)
    connection.pgconn.finish()
    assert eventually(lambda: server.connections == 0)


@pytest.fixture
def impatient(stored: Stored) -> Iterator[Server]:
    """Waits 0.4 s for clients that read nothing."""
    made = Server(stored, write_timeout=WriteTimeout(0.4, min_bytes=1))
    yield made
    made.close()


def test_a_client_that_never_reads(impatient: Server) -> None:
    server = impatient
    raw = Raw(server)
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.startup()
    raw.hear_until()
    raw.say((b"Q", b"select i, repeat('x', 1000) from range(100000000) t(i)\0"))
    began = time.monotonic()
    with server.connect() as other:
        assert server.connections == 2
        for _ in range(5):
            assert other.execute("select count(*) from kept").fetchone() == (3,)
        assert time.monotonic() - began < 5
        assert eventually(lambda: server.connections == 1)


def test_a_slow_client_gets_all_of_it(impatient: Server) -> None:
    raw = Raw(impatient)
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    raw.startup()
    raw.hear_until()
    raw.say((b"Q", b"select repeat('x', 2000) as y from range(12000) t(i)\0"))
    found = bytearray()
    while not found.endswith(b"SELECT 12000\0Z\0\0\0\x05I"):
        more = raw.socket.recv(1_000_000)
        assert more
        found += more
        time.sleep(0.005)
    assert found.count(b"x") == 24_000_000


def test_frames_that_come_in_pieces(raw: Raw) -> None:
    said = b"Q" + struct.pack("!i", 13) + b"select 1\0"
    for at in range(len(said)):
        raw.socket.sendall(said[at : at + 1])
        time.sleep(0.002)
    assert kinds(raw.hear_until()) == b"TDCZ"


def test_many_frames_ahead(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MAX_READ_AHEAD", 1000)
    for _ in range(40):
        raw.say(*([(b"Q", b"show search_path\0")] * 20))
    for _ in range(800):
        assert kinds(raw.hear_until()) == b"TDCZ"


def test_the_server_ends_all_connections(stored: Stored) -> None:
    server = Server(stored)
    connection: psycopg.Connection[Any] = server.connect()
    connection.pgconn.send_query(b"subscribe kept")
    assert eventually(lambda: server.hub.followers == {"m.kept": 1})
    server.close()
    assert server.hub.followers == {} and server.connections == 0
    with pytest.raises(psycopg.OperationalError):
        connection.execute("select 1")
