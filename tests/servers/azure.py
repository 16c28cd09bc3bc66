"""Azurite, Microsoft's emulator of Azure's Blob Storage, from npm's registry."""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from tests.servers.jars import fetched, program
from tests.servers.s3 import free_port, wait_for

AZURITE = "3.37.0"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Every Azurite has this account and this key."""
_VERSION = "2021-08-06"


@dataclass(frozen=True)
class Azure:
    """A running emulator with one container."""

    endpoint: str
    container: str = "state"

    @property
    def root(self) -> str:
        """The container as a URI."""
        return f"abfss://{self.container}@{_ACCOUNT}.dfs.core.windows.net"

    @property
    def options(self) -> dict[str, str]:
        """As in a profile's ``storage_options``."""
        return self.through(self.endpoint)

    def through(self, endpoint: str) -> dict[str, str]:
        """The options that lead to a proxy."""
        return {
            "azure_storage_endpoint": f"{endpoint}/{_ACCOUNT}",
            "azure_storage_account_key": _KEY,
            "azure_allow_http": "true",
        }

    def refused(self) -> tuple[dict[str, str], str]:
        """Options that the server refuses, and what of them nobody may see."""
        secret = base64.b64encode(b"not the key of it").decode()
        return {**self.options, "azure_storage_account_key": secret}, secret


@contextmanager
def serving(folder: Path) -> Iterator[Azure]:
    """The emulator, which keeps everything in memory."""
    port, log = free_port(), folder / "azurite.log"
    found = Azure(f"http://127.0.0.1:{port}")
    server_file = fetched(f"azurite-{AZURITE}", _install) / "node_modules/.bin/azurite-blob"
    where = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [server_file, *where, "--silent", "--skipApiVersionCheck", "--inMemoryPersistence"], stdout=out, stderr=out
        )
    try:
        wait_for(port, server, log)
        _make_container(found)
        yield found
    finally:
        server.kill()  # it takes its time to end by itself
        server.wait(30)


def _install(folder: Path) -> None:
    npm = program("npm")
    (folder / "package.json").write_text("{}")
    command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run([*command, f"azurite@{AZURITE}"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"Azurite cannot be installed:\n{done.stderr}"


def _make_container(azure: Azure) -> None:
    """obstore makes none. See Microsoft's "Authorize with Shared Key"."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
    told = "\n".join(f"{name}:{value}" for name, value in headers.items())
    signed = f"PUT{chr(10) * 12}{told}\n/{_ACCOUNT}/{_ACCOUNT}/{azure.container}\nrestype:container"
    digest = hmac.new(base64.b64decode(_KEY), signed.encode(), hashlib.sha256).digest()
    headers |= {"Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}", "Content-Length": "0"}
    url = f"{azure.endpoint}/{_ACCOUNT}/{azure.container}?restype=container"
    with urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers), timeout=60) as answer:
        assert answer.status == 201
