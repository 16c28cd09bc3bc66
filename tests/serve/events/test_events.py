"""Events are accepted once for each key, or refused with nothing of them kept, and become rows at the next intake."""

from __future__ import annotations

import errno
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from dbt_incremental_dd.serve import inboxes
from dbt_incremental_dd.serve.http.access_middleware import MAX_EVENT_BYTES
from dbt_incremental_dd.serve.http.event_lines import MAX_EVENTS
from dbt_incremental_dd.sources.change_token import change_token
from dbt_incremental_dd.storage import created
from tests.serve.events.sources import EventSource, send
from tests.serve.serving import serving
from tests.serve.users.people import bearer, write_users

ARRAY = "application/json"


@pytest.fixture
def source(tmp_path: Path) -> EventSource:
    return EventSource(tmp_path)


@pytest.fixture
def url(tmp_path: Path, source: EventSource) -> Iterator[str]:
    with serving(tmp_path) as served:
        yield served.url


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ('{"id": 1, "v": "a"}\n{"id": 2}', "application/x-ndjson"),
        ('\n {"id": 1, "v": "a"} \r\n\r\n{"id":\r2}\r\n', "application/jsonl; charset=utf-8"),
        ('[{"id": 1, "v": "a"}, {"id": 2}]', ARRAY),
        (' [\n{"id": 1,\n "v": "a"}\n,{"id"\r:2}]\n', ARRAY),
    ],
)
def test_events_become_rows(source: EventSource, url: str, body: str, content_type: str) -> None:
    answer = send(url, body, "k", content_type=content_type)
    assert (answer.status_code, answer.json()) == (202, {"source": "shop.clicks", "events": 2, "key": "k"})
    assert source.take().rows == 2
    assert source.rows() == {(1, "a"): 1, (2, None): 1}
    assert source.take().rows == 0


def test_a_single_object_is_an_event_and_its_text_is_kept(source: EventSource, url: str) -> None:
    digits = "9" * 5_000
    assert send(url, f'{{"id": 7, "other": {digits}}}', content_type=ARRAY).json()["events"] == 1
    (name,) = source.inbox.waiting()
    data = created.read(f"{source.inbox.new}/{name}", {})
    assert data == f'{{"id": 7, "other": {digits}}}\n'.encode()


@pytest.mark.parametrize(
    ("body", "content_type", "status", "message"),
    [
        ('{"id": 1}\n{"id": 2', "application/x-ndjson", 400, r"line 2: this is not JSON, at character 9"),
        ('{"id": 1}\n\n[{"id": 2}]', "application/x-ndjson", 400, r"line 3: an event is a JSON object"),
        ('{"id": 1} {"id": 2}', "application/x-ndjson", 400, r"line 1: there is more behind the event"),
        ('{"id": NaN}', "application/x-ndjson", 400, r"line 1: NaN is not JSON"),
        (b'{"id": 1}\n{"v": "\xff"}', "application/x-ndjson", 400, r"line 2: this is not UTF-8"),
        ('{"a":' * 100_000, "application/x-ndjson", 400, r"line 1: it is nested too deeply"),
        ('[{"id": 1},\n{"id": 2}\n{"id": 3}]', ARRAY, 400, r"line 3: .*neither a comma"),
        ('[{"id": 1},\n]', ARRAY, 400, r"line 2: this is not JSON"),
        ('[{"id": 1}', ARRAY, 400, r"line 1: .*neither a comma"),
        ('[{"id": 1}] x', ARRAY, 400, r"line 1: there is more behind"),
        ('[{"id": 1}, 2]', ARRAY, 400, r"line 1: an event is a JSON object"),
        ("[", ARRAY, 400, r"line 1: this is not JSON"),
        ("[]", ARRAY, 400, r"there are no events"),
        (" \n", "application/x-ndjson", 400, r"there are no events"),
        ("", ARRAY, 400, r"there are no events"),
        ("{}", "text/csv", 415, r"not read from Content-Type text/csv"),
        ("{}\n" * (MAX_EVENTS + 1), "application/x-ndjson", 413, r"50,000 events at most"),
        ('{"v": "' + "x" * MAX_EVENT_BYTES + '"}', ARRAY, 413, rf"{MAX_EVENT_BYTES} bytes at most"),
    ],
)
def test_what_is_no_event_is_refused(
    source: EventSource, url: str, body: str | bytes, content_type: str, status: int, message: str
) -> None:
    answer = send(url, body, "k", content_type=content_type)
    assert answer.status_code == status
    assert re.search(message, answer.json()["error"]), answer.text
    assert source.inbox.waiting() == {} and source.take().rows == 0


def test_a_body_in_parts_that_is_too_large(source: EventSource, url: str) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(MAX_EVENT_BYTES // 1_000_000 + 2):
            yield b" " * 1_000_000

    headers = {"content-type": ARRAY}
    try:
        answer = httpx.post(f"{url}/sources/shop.clicks/events", content=parts(), headers=headers, timeout=30)
    except httpx.WriteError:  # the server has closed the connection before all was sent
        return
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-encoding": "gzip"}, 415),
        ({"idempotency-key": "x" * 256}, 400),
        ({"idempotency-key": ""}, 400),
        ({"origin": "https://elsewhere.example"}, 403),
        ({"host": "elsewhere.example"}, 403),
    ],
)
def test_headers_that_are_refused(source: EventSource, url: str, headers: dict[str, str], status: int) -> None:
    assert send(url, [{"id": 1}], **headers).status_code == status
    assert source.inbox.waiting() == {}


def test_a_key_counts_once_whenever_it_comes_again(source: EventSource, url: str, tmp_path: Path) -> None:
    with serving(tmp_path) as other:
        first = send(url, [{"id": 1}], "k")
        for again in (url, other.url):
            assert send(again, [{"id": 1}], "k").json() == first.json()
            assert send(again, [{"id": 2}], "k").status_code == 422
        assert source.take().rows == 1
        assert send(other.url, '[{"id": 1}]', "k", content_type=ARRAY).json() == first.json()
        source.inbox.put_away(list(source.inbox.waiting()))
        assert send(url, [{"id": 1}], "k").json() == first.json()
        assert send(other.url, [{"id": 2}], "k").status_code == 422
        assert source.take().rows == 0 and source.rows() == {(1, None): 1}


def test_without_a_key_each_request_counts(source: EventSource, url: str) -> None:
    keys = {send(url, [{"id": 1}]).json()["key"] for _ in range(3)}
    assert len(keys) == 3 and source.take().rows == 3
    assert source.rows() == {(1, None): 3}
    assert send(url, [{"id": 1}], keys.pop()).status_code == 202  # the key that was made is a key as any other
    assert source.take().rows == 0


def test_only_sources_that_take_events(source: EventSource, url: str) -> None:
    assert send(url, [{"id": 1}], source="shop.other").status_code == 404
    assert send(url, [{"id": 1}], source="SHOP.Clicks").json()["source"] == "shop.clicks"


def test_a_full_inbox_is_told_until_an_intake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each request looks at the inbox anew, also where a look has taken long.
    monkeypatch.setattr(inboxes, "_SECONDS", 0.0)
    monkeypatch.setattr(inboxes, "_TIMES_AS_LONG", 0)
    source = EventSource(tmp_path, inbox_bytes=100)
    with serving(tmp_path) as served:
        answers = [send(served.url, [{"id": n, "v": "x" * 30}]) for n in range(4)]
        assert [one.status_code for one in answers] == [202, 202, 202, 429]
        assert int(answers[-1].headers["retry-after"]) > 0
        assert source.take().rows == 3
        assert send(served.url, [{"id": 9}]).status_code == 202
        monkeypatch.setattr(inboxes, "_MAX_FILES", 1)
        assert send(served.url, [{"id": 9}]).status_code == 429


def test_a_disk_that_is_full(source: EventSource, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(created, "create", fail)
    answer = send(url, [{"id": 1}], "k")
    assert (answer.status_code, answer.json()["error"]) == (507, "the events cannot be stored: No space left on device")
    monkeypatch.undo()
    assert send(url, [{"id": 1}], "k").status_code == 202 and source.take().rows == 1


def test_who_may_send(tmp_path: Path) -> None:
    source = EventSource(tmp_path / "root")
    users = write_users(
        tmp_path / "users.yml", ann="send: ['shop.*']", bob="read: ['*']", eve="send: [shop.clicks], read: [x.y]"
    )
    with serving(tmp_path / "root", users=users, audit=tmp_path / "audit.jsonl") as served:
        assert send(served.url, [{"id": 1}], "k").status_code == 401
        refused = [send(served.url, [{"id": 1}], "k", name, **bearer("bob")) for name in ("shop.clicks", "shop.none")]
        assert [one.status_code for one in refused] == [403, 403]
        # Each user has keys of its own.
        assert send(served.url, [{"id": 1}], "k", **bearer("ann")).status_code == 202
        assert send(served.url, [{"id": 2}], "k", **bearer("eve")).status_code == 202
        assert httpx.get(f"{served.url}/collections/shop.clicks/rows", headers=bearer("eve")).status_code == 404
    source.take()
    assert source.rows() == {(1, None): 1, (2, None): 1}
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    sent = Counter((one["user"], one["action"], one.get("collection"), one["status"], one["rows"]) for one in lines)
    assert sent["ann", "send", "shop.clicks", "202", 1] == sent["eve", "send", "shop.clicks", "202", 1] == 1
    assert sent["bob", "send", "shop.none", "403", 0] == 1


def test_watch_sees_what_comes_and_not_what_is_taken_in(source: EventSource, url: str) -> None:
    tokens = [change_token(source.storage, source.spec)]
    for step in (lambda: send(url, [{"id": 1}]), source.take, source.take, lambda: send(url, [{"id": 2}]), source.take):
        step()
        tokens.append(change_token(source.storage, source.spec))
    changed = [before != after for before, after in pairwise(tokens)]
    assert changed == [True, False, False, True, False]
