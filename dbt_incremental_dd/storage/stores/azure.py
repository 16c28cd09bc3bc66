"""Azure's Blob Storage and Data Lake Storage. Spark reads and writes them by hadoop-azure, whose settings end with the
account's host."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from dbt_incremental_dd.storage.stores.store import completed, is_true

_KEY, _SAS = "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN"
_CLIENT, _SECRET, _TENANT = "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"
_OTHER_NAMES = {
    **dict.fromkeys(("AZURE_STORAGE_ACCESS_KEY", "AZURE_ACCOUNT_KEY", "AZURE_ACCESS_KEY"), _KEY),
    **dict.fromkeys(("AZURE_STORAGE_SAS_KEY", "AZURE_SAS_KEY", "AZURE_SAS_TOKEN"), _SAS),
    "AZURE_STORAGE_CLIENT_ID": _CLIENT,
    "AZURE_STORAGE_CLIENT_SECRET": _SECRET,
    **dict.fromkeys(("AZURE_STORAGE_TENANT_ID", "AZURE_STORAGE_AUTHORITY_ID", "AZURE_AUTHORITY_ID"), _TENANT),
}
_PROVIDER = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
_LOGIN = "https://login.microsoftonline.com"


class Azure:
    """See ``Store``."""

    schemes = ("abfss", "abfs", "az", "azure", "adl", "wasb", "wasbs")
    package = "org.apache.hadoop:hadoop-azure"
    missing = (
        "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
        "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    )

    def canonical(self, options: Mapping[str, str]) -> dict[str, str]:
        return completed(options, "AZURE_", _OTHER_NAMES)

    def hadoop(self, uri: str, options: Mapping[str, str]) -> dict[str, str]:
        host = urlsplit(uri).netloc.rpartition("@")[2]
        found = {} if not is_true(options.get("AZURE_ALLOW_HTTP")) else {"fs.azure.always.use.https": "false"}
        if options.get(_KEY):
            found |= {f"fs.azure.account.auth.type.{host}": "SharedKey", f"fs.azure.account.key.{host}": options[_KEY]}
        elif options.get(_SAS):
            found |= {
                f"fs.azure.account.auth.type.{host}": "SAS",
                f"fs.azure.sas.fixed.token.{host}": options[_SAS].removeprefix("?"),
            }
        elif all(options.get(name) for name in (_CLIENT, _SECRET, _TENANT)):
            found |= {
                f"fs.azure.account.auth.type.{host}": "OAuth",
                f"fs.azure.account.oauth.provider.type.{host}": _PROVIDER,
                f"fs.azure.account.oauth2.client.id.{host}": options[_CLIENT],
                f"fs.azure.account.oauth2.client.secret.{host}": options[_SECRET],
                f"fs.azure.account.oauth2.client.endpoint.{host}": f"{_LOGIN}/{options[_TENANT]}/oauth2/token",
            }
        return found

    def spark_uri(self, uri: str) -> str:
        return uri

    def refused(self, uri: str, options: Mapping[str, str]) -> tuple[str, str] | None:
        if uri.startswith(("abfss://", "abfs://")) and "@" in urlsplit(uri).netloc:
            return None
        return (
            f"Spark does not know Azure's storage as {uri}",
            "Write it as abfss://<container>@<account>.dfs.core.windows.net/<path>.",
        )
