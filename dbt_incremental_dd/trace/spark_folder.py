"""Has Spark write a DataFrame as Parquet files into a new folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COMMITTERS = "_temporary"
_NEEDED = f"{_COMMITTERS}/0/_temporary"
"""The folders that Hadoop's FileOutputCommitter makes. For each folder and file that Hadoop creates on a disk it starts
a process, ``chmod``: a third of what writing a few rows takes. Where another committer is set they are not used."""
_NO_MARK = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""What is complete is said by a commit that names the files, so that nobody needs a file ``_SUCCESS``."""


def write_folder(storage: Storage, frame: DataFrame, uri: str, options: Mapping[str, str | int] | None = None) -> None:
    """Writes the frame by one Spark job into a folder that is not there. ``options``: of Spark's Parquet writer.

    Raises FileExistsError for one that is there on a disk, and what Spark raises; the folder then holds whatever was
    written.
    """
    writer = frame.write.options(**_NO_MARK, **(options or {}))
    if not storage.is_local:
        writer.parquet(spark_uri(uri))
        return
    os.makedirs(uri)
    os.makedirs(f"{uri}/{_NEEDED}")
    writer.mode("append").parquet(spark_uri(uri))
    shutil.rmtree(f"{uri}/{_COMMITTERS}", ignore_errors=True)
