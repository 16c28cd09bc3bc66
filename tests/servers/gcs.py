"""fake-gcs-server, an emulator of Google Cloud Storage, from Go's module proxy.

It knows Google's JSON API. Of the XML API, which obstore and delta-rs use, it lacks conditional writes, copies, and
lists that begin at a name: a proxy adds these.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote

from tests.servers.jars import fetched, program
from tests.servers.s3 import free_port, wait_for
from tests.servers.slow_proxy import Answer, Handler, slowed

FAKE_GCS = "v1.56.1"


@dataclass(frozen=True)
class Gcs:
    """A running emulator with one bucket."""

    endpoint: str
    folder: Path
    bucket: str = "state"

    @property
    def root(self) -> str:
        """The bucket as a URI."""
        return f"gs://{self.bucket}"

    @property
    def options(self) -> dict[str, str]:
        """As in a profile's ``storage_options``."""
        return self.through(self.endpoint)

    def through(self, endpoint: str) -> dict[str, str]:
        """The options that lead to a proxy."""
        account = self.folder / f"account-{endpoint.rpartition(':')[2]}.json"
        account.write_text(
            json.dumps(
                {
                    "type": "service_account",
                    "client_email": "tests",
                    "private_key_id": "none",
                    "private_key": "none",
                    "gcs_base_url": endpoint,
                    "disable_oauth": True,
                }
            )
        )
        return {"google_service_account": str(account), "google_allow_http": "true"}


@contextmanager
def serving(folder: Path) -> Iterator[Gcs]:
    """The emulator, which keeps everything in memory."""
    port, log = free_port(), folder / "gcs.log"
    host, address = f"127.0.0.1:{port}", f"http://127.0.0.1:{port}"
    server_file = fetched(f"fake-gcs-server-{FAKE_GCS}", _install) / "fake-gcs-server"
    where = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", host]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [server_file, *where, "-external-url", address, "-backend", "memory", "-log-level", "warn"],
            stdout=out,
            stderr=out,
        )
    try:
        wait_for(port, server, log)
        with slowed(address, handler=_FromXml) as proxy:
            found = Gcs(proxy.endpoint, folder)
            make = json.dumps({"name": found.bucket}).encode()
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"{address}/storage/v1/b?project=p", make, headers)
            urllib.request.urlopen(request, timeout=60).close()
            yield found
    finally:
        server.terminate()
        server.wait(30)


def _install(folder: Path) -> None:
    # Optimizing it takes longer than it saves.
    plain = ["-gcflags=all=-N -l -dwarf=false", "-ldflags=-s -w"]
    command = [program("go", "/usr/local/go/bin"), "install", *plain, f"github.com/fsouza/fake-gcs-server@{FAKE_GCS}"]
    done = subprocess.run(
        command, env={**os.environ, "GOBIN": str(folder)}, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, f"fake-gcs-server cannot be installed:\n{done.stderr}"


class _FromXml(Handler):
    """Requests of the XML API as those of the JSON API. The server answers to its own name only."""

    keeps_host = False

    def _asked(self, body: bytes) -> Answer:
        name, _, query = self.path.partition("?")
        _, bucket, *parts = name.split("/")
        path = quote(unquote("/".join(parts)), safe="")
        if self.command != "PUT":
            status, headers, data = self._ask(self.command, self.path, body)
            after = parse_qs(query).get("start-after")
            return status, headers, data if after is None else _listed_after(after[0], data)
        if query:
            return 501, [], b"uploads in parts are not translated"
        condition = self.headers.get("x-goog-if-generation-match")
        given = "" if condition is None else f"&ifGenerationMatch={condition}"
        source = self.headers.get("x-goog-copy-source")
        if source is None:
            target = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={path}{given}"
        else:
            of, _, object = unquote(source).lstrip("/").partition("/")
            copied = f"{of}/o/{quote(object, safe='')}"
            target = f"/storage/v1/b/{copied}/copyTo/b/{bucket}/o/{path}?{given.removeprefix('&')}"
        status, headers, data = self._ask("POST", target, body)
        tag = json.loads(data).get("etag") if status == 200 else None
        return status, [*headers, *([("ETag", f'"{tag}"')] if tag else [])], data


def _listed_after(name: str, listed: bytes) -> bytes:
    return re.sub(
        rb"<Contents><Key>(.*?)</Key>.*?</Contents>",
        lambda found: found[0] if unescape(found[1].decode()) > name else b"",
        listed,
    )
