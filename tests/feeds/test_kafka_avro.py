"""Messages of Avro, by a real registry: each read by the schema that it was written with."""

from __future__ import annotations

import datetime
import io
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.sources.connectors.kafka import client
from tests.feeds.kafka import Reader, Writer, kafka, spark, spec_of
from tests.servers.kafka import Broker
from tests.servers.registry import Registry, registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["kafka", "spark"]
pytestmark = pytest.mark.kafka
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
FIRST = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "long"}, {"name": "v", "type": ["null", "string"], "default": None}],
}
LATER = {**FIRST, "fields": [*FIRST["fields"], {"name": "n", "type": "int", "default": 0}]}  # type: ignore[misc]


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(params=["client", "files"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the client alone, or by way of files."""
    if request.param == "files":
        monkeypatch.setattr(Reader, "thresholds", Thresholds(taken_rows=1))
        monkeypatch.setattr(client, "_AT_A_TIME", 5)
    return str(request.param)


class Encoder:
    def __init__(self, schemas: Registry, subject: str, schema: Any, references: Any = None, named: Any = None) -> None:
        import fastavro

        self._number = schemas.register(subject, schema, references)
        self._schema = fastavro.parse_schema(schema, named or {})

    def __call__(self, value: Any) -> bytes:
        import fastavro

        out = io.BytesIO(b"\0" + self._number.to_bytes(4, "big"))
        out.seek(0, io.SEEK_END)
        fastavro.schemaless_writer(out, self._schema, value)
        return out.getvalue()


def test_upsert(spark: SparkSession, kafka: Broker, schemas: Registry, tmp_path: Path, way: str) -> None:
    """Schemas change in between; keys are Avro, too."""
    topic = f"avro-upsert-{way}"
    kafka.create(topic, 2)
    key, first = Encoder(schemas, f"{topic}-key", KEY), Encoder(schemas, f"{topic}-value", FIRST)
    later = Encoder(schemas, f"{topic}-value", LATER)
    spec = spec_of(
        kafka.servers, topic, envelope="upsert", key="id", format="avro", options={"schema.registry.url": schemas.url}
    )
    reader, writer = Reader(spark, tmp_path, spec), Writer(kafka, topic)
    writer.send(*((key({"id": n}), first({"id": n, "v": f"v{n}"})) for n in range(8)), (key({"id": 3}), None))
    reader.take()
    assert reader.rows() == Counter((n, f"v{n}", None) for n in range(8) if n != 3)
    writer.send(*((key({"id": n}), later({"id": n, "v": None, "n": n})) for n in (1, 3)), (key({"id": 0}), None))
    reader.take()
    assert reader.rows() == Counter([(1, None, 1), (3, None, 3), *((n, f"v{n}", None) for n in (2, 4, 5, 6, 7))])


def test_types_are_those_of_the_schema(
    spark: SparkSession, kafka: Broker, schemas: Registry, tmp_path: Path, way: str
) -> None:
    topic = f"avro-types-{way}"
    kafka.create(topic, 1)
    point = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "double"}]}
    schemas.register("points", point)
    fields = {
        "i": "int",
        "b": "boolean",
        "d": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        "day": {"type": "int", "logicalType": "date"},
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "e": {"type": "enum", "name": "E", "symbols": ["ONE", "TWO"]},
        "l": {"type": "array", "items": "string"},
        "m": {"type": "map", "values": "long"},
        "p": "Point",
    }
    schema = {"type": "record", "name": "All", "fields": [{"name": n, "type": t} for n, t in fields.items()]}
    references = [{"name": "Point", "subject": "points", "version": 1}]
    named: dict[str, Any] = {}
    import fastavro

    fastavro.parse_schema(point, named)
    encode = Encoder(schemas, f"{topic}-value", schema, references, named)
    options = {"schema.registry.url": schemas.url}
    spec = spec_of(kafka.servers, topic, {}, envelope="append", format="avro", options=options)
    at = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, datetime.UTC)
    value = {"i": 1, "b": True, "d": Decimal("1.50"), "day": datetime.date(2024, 1, 2), "at": at, "e": "TWO"}
    value |= {"l": ["x", "y"], "m": {"k": 7}, "p": {"x": 0.5}}
    Writer(kafka, topic).send((None, encode(value)), (None, encode(value)))
    reader = Reader(spark, tmp_path, spec)
    reader.take()
    (found,) = reader.rows(key=repr).items()
    local = at.astimezone().replace(tzinfo=None)
    assert found == (repr((1, True, value["d"], value["day"], local, "TWO", ["x", "y"], {"k": 7}, _row(x=0.5))), 2)


def _row(**values: Any) -> Any:
    from pyspark.sql import Row

    return Row(**values)


def test_debezium(spark: SparkSession, kafka: Broker, schemas: Registry, tmp_path: Path, way: str) -> None:
    topic = f"avro-debezium-{way}"
    kafka.create(topic, 1)
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
    event = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", FIRST]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"]},
        ],
    }
    encode = Encoder(schemas, f"{topic}-value", event)
    options = {"schema.registry.url": schemas.url}
    spec = spec_of(kafka.servers, topic, {}, envelope="debezium", key="id", format="avro", options=options)
    reader, writer = Reader(spark, tmp_path, spec), Writer(kafka, topic)

    def told(lsn: int, op: str, before: Any, after: Any) -> tuple[None, bytes]:
        return None, encode({"before": before, "after": after, "op": op, "source": {"lsn": lsn}, "ts_ms": lsn})

    one, other, two = {"id": 1, "v": "a"}, {"id": 1, "v": "b"}, {"id": 2, "v": None}
    writer.send(told(1, "c", None, one), told(2, "r", None, two), told(3, "u", one, other))
    reader.take()
    assert reader.rows() == Counter([(1, "b"), (2, None)])
    writer.send(told(4, "d", two, None), (None, None), told(3, "u", one, other))
    reader.take()
    assert reader.rows() == Counter([(1, "b")])


def test_malformed_messages(spark: SparkSession, kafka: Broker, schemas: Registry, tmp_path: Path, way: str) -> None:
    topic = f"avro-malformed-{way}"
    kafka.create(topic, 1)
    encode = Encoder(schemas, f"{topic}-value", FIRST)
    options = {"schema.registry.url": schemas.url}
    meta = {"envelope": "append", "format": "avro", "options": options}
    good = encode({"id": 1, "v": "a"})
    columns = {"id": "int", "v": "string"}
    large = encode({"id": 1 << 40, "v": "a"})
    Writer(kafka, topic).send(
        (None, good), (None, b"{}"), (None, good[:-1]), (None, good + b"x"), (None, None), (None, large)
    )
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, topic, columns, malformed="set_aside", **meta))
    reader.take()
    assert reader.rows() == Counter({(1, "a"): 1})
    assert sorted(file for file, _ in reader.rows("s.t__malformed")) == [f"{topic}[0]@{n}" for n in range(1, 6)]
    with pytest.raises(SourceError, match=r"5 record\(s\) do not fit"):
        Reader(spark, tmp_path / "other", spec_of(kafka.servers, topic, columns, **meta)).take()


def test_a_registry_that_has_nothing_or_does_not_answer(
    spark: SparkSession, kafka: Broker, schemas: Registry, tmp_path: Path
) -> None:
    kafka.create("avro-lost", 1)
    Writer(kafka, "avro-lost").send((None, b"\0\0\0\xff\xff\0"))
    for url, message in ((schemas.url, "has nothing at .*65535: 404"), ("http://127.0.0.1:9", "does not answer")):
        spec = spec_of(
            kafka.servers, "avro-lost", envelope="append", format="avro", options={"schema.registry.url": url}
        )
        with pytest.raises(SourceError, match=message):
            Reader(spark, tmp_path, spec).take()
