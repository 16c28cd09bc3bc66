"""Reading files' records: by Spark, or on the driver where a few rows of Parquet mean the same to Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, IntegerType, MapType, StringType, StructField, StructType

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.plain_text import Unclear
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import STRING
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.connectors.files import csv_text
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from dbt_incremental_dd.sources.formats import csv_lines, json_lines, json_text
from dbt_incremental_dd.sources.formats.limits import MOST_BYTES
from dbt_incremental_dd.sources.formats.options import is_set, option
from dbt_incremental_dd.sources.formats.options import without as other_options
from dbt_incremental_dd.sources.formats.parquet import as_spark_writes, flat_parts, is_ancient
from dbt_incremental_dd.sources.formats.values import YEARS, has_far, is_far
from dbt_incremental_dd.sources.partitions import Partition, completed, without
from dbt_incremental_dd.sources.record_schema import declared, inferred
from dbt_incremental_dd.sources.records import CORRUPT, FILE, on_driver, taken_rows
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.arrow import arrow_type, is_readable
from dbt_incremental_dd.trace.spark_reader import no_rows, quoted, struct

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

_TEXT, _NUMBER = "dd_text", "dd_number"


@dataclass(frozen=True)
class FilesToRead:
    """Files to read. ``base``: the folder below which folders' names give values of the columns ``given`` (in lower
    case). ``shown``: from Spark's name of a file to the one that the source has for it.
    ``aside``: a scratch folder for what is to be read of files with malformed lines. ``is_plain``: as ``json_lines``
    has it, of all lines."""

    uris: Sequence[str]
    base: str | None = None
    given: frozenset[str] = frozenset()
    shown: Callable[[Expression], Expression] = lambda name: name
    aside: str = ""
    is_plain: bool = False


def read(workspace: Workspace, spec: FilesSpec, found: FilesToRead, stored: Schema | None) -> DataFrame:
    """The files' records in the stored columns, or the declared ones, or those that Spark finds in them; of JSON and
    CSV with the text of what does not fit. Raises SourceError."""
    spark = workspace.spark
    wanted = declared(workspace.session, spec) if stored is None else struct(stored)
    if wanted is None:
        wanted = _found_columns(spark, spec, found)
    if not found.uris:
        return no_rows(spark, wanted)
    if spec.format == "json" and not is_set(spec.options, "multiLine"):
        return _json_lines(workspace, spec, found, wanted)
    if spec.format in ("json", "csv"):
        return _texts(spark, spec, found, wanted)
    frame = _reader(spark, spec, found).schema(wanted).format(str(spec.format)).load(list(found.uris))
    columns = [_in_calendar(spec, field).alias(field.name) for field in wanted]
    return frame.select(*columns, _file(found))


def _found_columns(spark: SparkSession, spec: FilesSpec, found: FilesToRead) -> StructType:
    if not found.uris:
        raise SourceError(
            f"source {spec.name}: there are no files at {spec.path} yet, and no columns are declared",
            "Declare the source's columns with their data_type, or wait for the first file.",
        )
    reader = _reader(spark, spec, found)
    reader = reader.option("inferSchema", "true") if spec.format == "csv" else reader
    return inferred(spec, reader.format(str(spec.format)).load(list(found.uris)).schema)


def _reader(spark: SparkSession, spec: FilesSpec, found: FilesToRead) -> DataFrameReader:
    reader = spark.read.options(**dict(spec.options))
    return reader if found.base is None else reader.option("basePath", found.base)


def _file(found: FilesToRead) -> Expression:
    return found.shown(F.col("_metadata.file_path")).alias(FILE)


def _lines(spark: SparkSession, spec: FilesSpec, found: FilesToRead, wanted: StructType, **options: str) -> DataFrame:
    """The files' lines as they are (``dd_text``), with the columns that folders give."""
    given = [field for field in wanted if field.name.lower() in found.given]
    reader = spark.read.options(**other_options(spec.options, "wholetext"), **options)
    reader = reader if found.base is None else reader.option("basePath", found.base)
    lines = reader.schema(StructType([StructField(_TEXT, StringType()), *given])).format("text").load(list(found.uris))
    return lines.select(_TEXT, *(quoted(field.name) for field in given), _file(found))


def _own(found: FilesToRead, wanted: StructType) -> StructType:
    """The columns that the files have themselves."""
    return StructType([field for field in wanted if field.name.lower() not in found.given])


def _json_lines(workspace: Workspace, spec: FilesSpec, found: FilesToRead, wanted: StructType) -> DataFrame:
    """Lines of which Spark would leave something out are malformed; the others are read by themselves."""
    if found.is_plain:
        return _by_spark(workspace.spark, spec, found, wanted, F.lit(None).cast("string"))
    spark, most = workspace.spark, workspace.thresholds.malformed_rows
    text, own = F.col(_TEXT), _own(found, wanted)
    options = other_options(spec.options, "lineSep", "multiLine", "mode", "columnNameOfCorruptRecord")
    is_wrong = json_text.is_wrong(text, own, options)
    lines = _lines(spark, spec, found, wanted)
    lines = lines.where(~json_text.is_blank(text))
    bad = lines.where(is_wrong).select(F.make_valid_utf8(text), FILE).limit(most + 1).collect()
    frame = _by_spark(spark, spec, found, wanted, F.lit(None).cast("string"))
    if not bad:
        return frame
    files = sorted({row[1] for row in bad})
    good = _written(spec, found, lines.where(F.col(FILE).isin(files) & ~is_wrong), files)
    numbered = StructType([*wanted.fields, StructField(_NUMBER, IntegerType())])
    rest = _by_spark(spark, spec, good, numbered, F.lit(None).cast("string")).drop(_NUMBER)
    frame = frame.where(~F.col(FILE).isin(files)).unionByName(rest)
    malformed = StructType([StructField(CORRUPT, StringType()), StructField(FILE, StringType())])
    return frame.unionByName(spark.createDataFrame(bad, malformed), allowMissingColumns=True)


def _written(spec: FilesSpec, found: FilesToRead, lines: DataFrame, files: Sequence[str]) -> FilesToRead:
    """Lines of these files, written aside with their file's number in place of its name."""
    names = F.array(*map(F.lit, files))
    assert found.aside, "there is no folder for it"
    uri = spark_uri(found.aside)
    given = [name for name in lines.columns if name not in (_TEXT, FILE)]
    number = F.array_position(names, F.col(FILE)).cast("int").alias(_NUMBER)
    writer = lines.select(_TEXT, *map(quoted, given), number).write.partitionBy(_NUMBER, *given)
    writer.option("lineSep", option(spec.options, "lineSep", "\n")).text(uri)
    return FilesToRead([uri], uri, found.given | {_NUMBER}, lambda _: F.element_at(names, F.col(_NUMBER)))


def _texts(spark: SparkSession, spec: FilesSpec, found: FilesToRead, wanted: StructType) -> DataFrame:
    """CSV, and JSON of which a file is one text."""
    if spec.format == "json":
        _require_whole(spec, _lines(spark, spec, found, wanted, wholetext="true"))
        return _by_spark(spark, spec, found, wanted, F.lit(None).cast("string"))
    own = _own(found, wanted)
    lines = _lines(spark, spec, found, wanted)
    has_other = csv_text.has_other_bytes(spec, lines, F.col(_TEXT), F.col(FILE), len(own))
    shown = _shown(own)
    replaced = F.when(shown.contains(csv_text.REPLACED), shown) if has_other else F.lit(None).cast("string")
    return _by_spark(spark, spec, found, wanted, replaced)


def _by_spark(
    spark: SparkSession, spec: FilesSpec, found: FilesToRead, wanted: StructType, corrupt: Expression
) -> DataFrame:
    """What Spark's reader makes of the files; ``corrupt``: the text of further records that do not fit."""
    # A header that says otherwise is an error; by default columns are taken in the order in which they come.
    reader = _reader(spark, spec, found).option("enforceSchema", "false")
    reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    frame = reader.schema(StructType([*wanted.fields]).add(CORRUPT, StringType())).format(str(spec.format))
    own = _own(found, wanted)
    corrupt = F.coalesce(quoted(CORRUPT), corrupt, *_when_far(own))
    columns = [quoted(field.name).alias(field.name) for field in wanted]
    return frame.load(list(found.uris)).select(*columns, corrupt.alias(CORRUPT), _file(found))


def _shown(own: StructType) -> Expression:
    """A record's values as text."""
    values = (quoted(f.name) if _is_flat(f.dataType) else F.to_json(quoted(f.name)) for f in own)
    return F.concat_ws(",", *(value.cast("string") for value in values))


def _is_flat(dtype: DataType) -> bool:
    return not isinstance(dtype, StructType | ArrayType | MapType)


def _when_far(own: StructType) -> Iterator[Expression]:
    """The record where a column's date is outside the calendar."""
    for field in own.fields:
        found = is_far(quoted(field.name), field.dataType)
        if found is not None:
            yield F.when(found, _shown(own))


def _require_whole(spec: FilesSpec, files: DataFrame) -> None:
    """Raises SourceError where a file is not one JSON text, of which Spark would read the beginning."""
    bad = files.where(~json_text.is_one_text(F.col(_TEXT), spec.options)).select(FILE).limit(1).collect()
    if bad:
        raise SourceError(
            f"source {spec.name}: {bad[0][0]} is not one JSON text in UTF-8, in which each name comes once",
            "Correct the file, or leave out options.multiLine where each line is a record.",
        )


def _in_calendar(spec: FilesSpec, field: StructField) -> Expression:
    """The column; a date outside the calendar ends the query."""
    found = is_far(quoted(field.name), field.dataType)
    if found is None:
        return quoted(field.name)
    told = F.concat(
        F.lit(f"column {field.name} of "), F.col("_metadata.file_path"), F.lit(f" has a date outside {YEARS}")
    )
    return F.when(found, F.raise_error(told)).otherwise(quoted(field.name))


def read_few(
    workspace: Workspace,
    spec: FilesSpec,
    filesystem: pafs.FileSystem,
    files: Mapping[str, Partition],
    stored: Schema,
) -> Relation | None:
    """The records of small files, each of a partition, without a Spark job; None where that might not be what Spark
    reads."""
    try:
        if spec.format in ("json", "csv"):
            return _few_lines(workspace, spec, filesystem, files, stored)
        return _few_rows(workspace, spec, filesystem, files, stored)
    except Unclear:
        return None


def _few_rows(
    workspace: Workspace,
    spec: FilesSpec,
    filesystem: pafs.FileSystem,
    files: Mapping[str, Partition],
    stored: Schema,
) -> Relation | None:
    if spec.format != "parquet" or spec.options or not is_readable(stored):
        return None
    tables, rows = [], 0
    for path, partition in files.items():
        wanted = [(column.name, arrow_type(column.type)) for column in without(stored, partition)]
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            rows += file.metadata.num_rows
            found = as_spark_writes(file.schema_arrow)
            if rows > taken_rows(workspace) or [(field.name, field.type) for field in found] != wanted:
                return None
            table = completed(file.read().cast(found).replace_schema_metadata(None), stored, partition)
        tables.append(table.append_column(FILE, pa.array([path] * table.num_rows, pa.string())))
    table = pa.concat_tables(tables)
    parts = [part for column in stored for part in flat_parts(table[column.name], column.type)]
    if any(is_ancient(values, dtype) or has_far(values) for values, dtype in parts):
        return None
    return on_driver(workspace, table, Schema((*stored.columns, Column(FILE, STRING))))


def parsed(workspace: Workspace, spec: FilesSpec, data: bytes, stored: Schema) -> pa.Table | None:
    """The records of lines of JSON or CSV; None where that might not be what Spark reads."""
    if spec.format == "csv":
        return csv_lines.parse(data, stored, spec.options, workspace.moments)
    if spec.options or spec.format != "json":
        return None
    return json_lines.parse(data, stored, workspace.moments, ignores_nulls=spec.envelope.ignores_nulls)


def _few_lines(
    workspace: Workspace,
    spec: FilesSpec,
    filesystem: pafs.FileSystem,
    files: Mapping[str, Partition],
    stored: Schema,
) -> Relation | None:
    size = sum(info.size or 0 for info in filesystem.get_file_info(list(files)))
    if not workspace.thresholds.taken_rows or size > workspace.most(MOST_BYTES):
        return None
    tables = []
    for path, partition in files.items():
        with filesystem.open_input_file(path) as file:
            table = parsed(workspace, spec, file.read(), without(stored, partition))
        if table is None:
            return None
        table = completed(table, stored, partition)
        tables.append(table.append_column(FILE, pa.array([path] * table.num_rows, pa.string())))
    return on_driver(workspace, pa.concat_tables(tables), Schema((*stored.columns, Column(FILE, STRING))))
