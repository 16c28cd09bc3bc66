"""Names of datasets, by OpenLineage's naming (https://openlineage.io/docs/spec/naming)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from dbt_incremental_dd.sources.config import SourceSpec

_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "wasbs", "postgresql": "postgres"}
"""Other names of one store."""
_WITH_SLASH = ("hdfs", "dbfs")
"""Stores in which a path begins with a slash."""
_METASTORES = ("spark.hadoop.hive.metastore.uris", "spark.hive.metastore.uris", "hive.metastore.uris")


class DatasetName(NamedTuple):
    """``namespace``: the store; ``name``: the dataset in it."""

    namespace: str
    name: str


def of_uri(uri: str) -> DatasetName:
    """The dataset at a URI, or at a path on this machine."""
    if "://" not in uri:
        return DatasetName("file", uri.rstrip("/") or "/")
    parts = urlsplit(uri)
    scheme = _SCHEMES.get(parts.scheme, parts.scheme)
    if scheme == "file":
        return DatasetName("file", parts.path.rstrip("/") or "/")
    path, user = parts.path.rstrip("/"), parts.username or ""
    store = parts.netloc if parts.password is None else f"{user}@{parts.netloc.rpartition('@')[2]}"
    return DatasetName(f"{scheme}://{store}", (path if scheme in _WITH_SLASH else path.lstrip("/")) or "/")


def of_relation(relation: str, catalog: str) -> DatasetName:
    """A relation of the catalog, whose namespace is ``catalog``."""
    return DatasetName(catalog, relation.replace("`", ""))


def of_source(spec: SourceSpec, catalog: str) -> DatasetName:
    """What a source reads."""
    return of_relation(spec.relation, catalog) if spec.uri is None else of_uri(spec.uri)


def catalog_of(settings: Mapping[str, str], root: str) -> str:
    """The namespace of the session's catalog: the first of its Hive metastores, or else the state root as a URI.
    ``settings``: Spark's."""
    for name in _METASTORES:
        found = re.match(r"\s*thrift://([^,\s/]+)", settings.get(name, ""))
        if found is not None:
            return f"hive://{found[1]}"
    return root if "://" in root else f"file:{root}"
