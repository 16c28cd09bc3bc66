"""Folders that Spark writes hold data files and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_folder import write_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_only_data_files_are_left(spark: SparkSession, tmp_path: Path) -> None:
    folder = f"{tmp_path}/data/one"
    write_folder(Storage(str(tmp_path)), spark.range(5).coalesce(1), folder, {"maxRecordsPerFile": 2})
    names = [name for name in os.listdir(folder) if not name.endswith(".crc")]
    assert len(names) == 3 and all(name.endswith(".parquet") for name in names)
    assert sorted(row.id for row in spark.read.parquet(folder).collect()) == [0, 1, 2, 3, 4]


def test_one_that_is_there_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    folder = f"{tmp_path}/data/one"
    write_folder(Storage(str(tmp_path)), spark.range(5), folder)
    with pytest.raises(FileExistsError):
        write_folder(Storage(str(tmp_path)), spark.range(3), folder)
    assert spark.read.parquet(folder).count() == 5
