"""The body of a request as events: JSON (RFC 8259), an event a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import JSONDecodeError
from typing import NoReturn

from dbt_incremental_dd.serve.sender import Refused

LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines")
ARRAY = "application/json"
MAX_EVENTS = 50_000
"""Maximum number of events in a request."""
_SPACE = re.compile(r"[ \t\r\n]*")
_LINE_END = re.compile(r"[\r\n]")


def event_lines(body: bytes, content_type: str) -> tuple[bytes, int]:
    """The events, each as it was sent but on one line, and how many there are. Raises Refused, naming the line, if the
    body is not what the content type says, or has no events, or too many."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _malformed(body.count(b"\n", 0, error.start) + 1, "this is not UTF-8") from error
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in (*LINES, ARRAY):
        raise Refused(
            415,
            f"events are not read from Content-Type {kind}" if kind else "the request has no Content-Type",
            f"It may be {LINES[0]}, an event a line, or {ARRAY}, an array of events or a single one.",
        )
    found: list[str] = []
    for event in _of_lines(text) if kind in LINES else _of_array(text):
        if len(found) == MAX_EVENTS:
            raise Refused(413, f"a request has {MAX_EVENTS:,} events at most", "Send them in several requests.")
        found.append(_LINE_END.sub(" ", event))
    if not found:
        raise Refused(400, "there are no events in the request", "Send at least one.")
    return "".join(f"{event}\n" for event in found).encode(), len(found)


def _of_lines(text: str) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), 1):
        event = line.strip(" \t\r")
        if event:
            end = _end(event, 0, number)
            if end < len(event):
                raise _malformed(number, f"there is more behind the event, at character {end + 1}")
            yield event


def _of_array(text: str) -> Iterator[str]:
    """Raises Refused unless the text is an object, or an array of objects."""
    at = end = _behind(text, 0)
    if text.startswith("[", at):
        at = _behind(text, at + 1)
        while not text.startswith("]", at) or text.startswith(",", end):
            end = _end(text, at)
            yield text[at:end]
            at = end = _behind(text, end)
            if text.startswith(",", at):
                at = _behind(text, at + 1)
            elif not text.startswith("]", at):
                raise _malformed(_line(text, at), "an event is followed by neither a comma nor the array's end")
        end = at + 1
    elif at < len(text):
        end = _end(text, at)
        yield text[at:end]
    end = _behind(text, end)
    if end < len(text):
        raise _malformed(_line(text, end), "there is more behind the events")


def _end(text: str, start: int, line: int | None = None) -> int:
    """Where the event that begins at ``start`` ends. ``line``: of which the text is."""
    try:
        _, end = _DECODER.raw_decode(text, start)
    except JSONDecodeError as error:
        at = _line(text, error.pos) if line is None else line
        raise _malformed(at, f"this is not JSON, at character {error.colno}: {error.msg}") from error
    except (_NotJson, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error} is not JSON"
        raise _malformed(_line(text, start) if line is None else line, why) from error
    if not text.startswith("{", start):
        raise _malformed(_line(text, start) if line is None else line, "an event is a JSON object")
    return int(end)


class _NotJson(Exception):
    """A word that JSON does not know."""


def _refuse(word: str) -> NoReturn:
    raise _NotJson(word)


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse)
"""Numbers are not converted, because they may be of any length."""


def _behind(text: str, at: int) -> int:
    """The position behind white space."""
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _malformed(line: int, why: str) -> Refused:
    return Refused(400, f"line {line}: {why}", "Nothing of the request is kept. Correct it, and send it again.")
