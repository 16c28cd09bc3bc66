"""S3, and what speaks its protocol. Spark reads and writes it by hadoop-aws."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_incremental_dd.storage.stores.store import completed, is_true

_KEY, _SECRET, _TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_ENDPOINT, _REGION = "AWS_ENDPOINT_URL", "AWS_REGION"
_OTHER_NAMES = {"AWS_ENDPOINT": _ENDPOINT, "AWS_DEFAULT_REGION": _REGION, "AWS_TOKEN": _TOKEN}
_UNSAFE = "AWS_S3_ALLOW_UNSAFE_RENAME"


class S3:
    """See ``Store``."""

    schemes = ("s3", "s3a")
    package = "org.apache.hadoop:hadoop-aws"
    missing = ("org.apache.hadoop.fs.s3a.S3AFileSystem",)

    def canonical(self, options: Mapping[str, str]) -> dict[str, str]:
        return completed(options, "AWS_", _OTHER_NAMES)

    def hadoop(self, uri: str, options: Mapping[str, str]) -> dict[str, str]:
        endpoint = options.get(_ENDPOINT)
        is_virtual = is_true(options.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST"))
        found = {
            "fs.s3a.endpoint": endpoint,
            "fs.s3a.endpoint.region": options.get(_REGION),
            "fs.s3a.access.key": options.get(_KEY),
            "fs.s3a.secret.key": options.get(_SECRET),
            "fs.s3a.session.token": options.get(_TOKEN),
            "fs.s3a.path.style.access": "true" if endpoint and not is_virtual else None,
            "fs.s3a.connection.ssl.enabled": "false" if endpoint and endpoint.startswith("http://") else None,
        }
        return {name: value for name, value in found.items() if value}

    def spark_uri(self, uri: str) -> str:
        return f"s3a://{uri.removeprefix('s3://')}" if uri.startswith("s3://") else uri

    def refused(self, uri: str, options: Mapping[str, str]) -> tuple[str, str] | None:
        if not is_true(options.get(_UNSAFE)):
            return None
        return (
            f"{_UNSAFE} lets two runs overwrite each other's commits",
            "Leave it out of storage_options and the environment: commits are conditional writes, which need no lock.",
        )
