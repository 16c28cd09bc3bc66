"""Google Cloud Storage. Spark reads and writes it by hadoop-gcp, or by Google's connector: both have these settings."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_incremental_dd.storage.stores.store import completed

_FILE, _TEXT = "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"
_OTHER_NAMES = {"GOOGLE_SERVICE_ACCOUNT_PATH": _FILE}
_AUTH = "fs.gs.auth"


class Gcs:
    """See ``Store``."""

    schemes = ("gs",)
    package = "org.apache.hadoop:hadoop-gcp"
    missing = ("org.apache.hadoop.fs.gs.GoogleHadoopFileSystem", 'No FileSystem for scheme "gs"')

    def canonical(self, options: Mapping[str, str]) -> dict[str, str]:
        return completed(options, "GOOGLE_", _OTHER_NAMES)

    def hadoop(self, uri: str, options: Mapping[str, str]) -> dict[str, str]:
        file = options.get(_FILE)
        if not file:
            return {}
        return {f"{_AUTH}.type": "SERVICE_ACCOUNT_JSON_KEYFILE", f"{_AUTH}.service.account.json.keyfile": file}

    def spark_uri(self, uri: str) -> str:
        return uri

    def refused(self, uri: str, options: Mapping[str, str]) -> tuple[str, str] | None:
        if _TEXT not in options or _FILE in options:
            return None
        return (
            f"Spark cannot take the text of a service account's key ({_TEXT.lower()})",
            f"Give {_FILE.lower()}, the path of its JSON file, in `storage_options`.",
        )
