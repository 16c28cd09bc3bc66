"""URIs in object storage, and one set of options for them, with delta-rs's names: for obstore, delta-rs and Spark.

Missing options come from environment variables of the same names, as in delta-rs.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.storage.stores.azure import Azure
from dbt_incremental_dd.storage.stores.gcs import Gcs
from dbt_incremental_dd.storage.stores.s3 import S3
from dbt_incremental_dd.storage.stores.store import Store

_STORES: tuple[Store, ...] = (S3(), Gcs(), Azure())


def is_remote(uri: str) -> bool:
    """Whether a path is in object storage."""
    return "://" in uri


def spark_uri(uri: str) -> str:
    """The path as Spark knows it."""
    store = _store_of(uri)
    return uri if store is None else store.spark_uri(uri)


def hadoop_settings(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's settings that correspond to the options."""
    store = _store_of(root)
    return {} if store is None else store.hadoop(root, store.canonical(options))


def missing_package(root: str, error: str) -> tuple[str, str] | None:
    """What Spark's error says to be missing, and the package that has it; None if it says something else."""
    store = _store_of(root)
    found = None if store is None else next((name for name in store.missing if name in error), None)
    return None if store is None or found is None else (found, store.package)


def require_safe(root: str, options: Mapping[str, str]) -> None:
    """Raises ConfigError if the options allow concurrent commits to overwrite each other, or if Spark has no such
    URIs."""
    store = _store_of(root)
    refused = None if store is None else store.refused(root, store.canonical(options))
    if refused is not None:
        raise ConfigError(*refused)


def canonical(uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options for a URI under canonical names, completed by environment variables of its store."""
    store = _store_of(uri)
    return dict(options) if store is None else store.canonical(options)


def _store_of(uri: str) -> Store | None:
    scheme = urlsplit(uri).scheme if is_remote(uri) else ""
    return next((store for store in _STORES if scheme in store.schemes), None)
