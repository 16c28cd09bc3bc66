"""The server's certificate. Connections after a renewal get the renewed one."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.serve.watched_files import WatchedFiles


def server_context(
    certificate: Path, key: Path, report: Callable[[str], None]
) -> tuple[ssl.SSLContext, WatchedFiles[None]]:
    """The context of the server's connections, and the files that it is made of; it follows them when they are read
    again. Raises ConfigError if they are no certificate chain and its key, in PEM."""
    context = _empty()

    def load() -> None:
        # A pair that does not fit would leave the context with half of it.
        for one in (_empty(), context):
            try:
                one.load_cert_chain(certificate, key, password=b"")
            except (OSError, ValueError) as error:
                raise ConfigError(
                    f"{certificate} and {key} are no certificate and its key: {error}",
                    "Give a PEM file with the chain, and one with its private key, without a password.",
                ) from error

    return context, WatchedFiles((certificate, key), load, report)


def _empty() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
