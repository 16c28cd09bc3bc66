"""A session whose time zone is another one for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTING = "spark.sql.session.timeZone"


@contextlib.contextmanager
def time_zone(spark: SparkSession, name: str) -> Iterator[None]:
    """The block runs in this zone."""
    former = str(spark.conf.get(_SETTING))
    spark.conf.set(_SETTING, name)
    try:
        yield
    finally:
        spark.conf.set(_SETTING, former)
