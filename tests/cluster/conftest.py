"""Object stores for the tests of this folder. Each serves for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import azure, gcs, s3

Store = s3.S3 | gcs.Gcs | azure.Azure


@pytest.fixture(name="s3", scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.S3]:
    """A server of S3's protocol, with a bucket that all tests share."""
    with s3.serving(tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture(scope="session")
def gcs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[gcs.Gcs]:
    """An emulator of Google Cloud Storage."""
    with gcs.serving(tmp_path_factory.mktemp("gcs")) as found:
        yield found


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azure.Azure]:
    """An emulator of Azure's Blob Storage."""
    with azure.serving(tmp_path_factory.mktemp("azure")) as found:
        yield found


@pytest.fixture(params=["s3", "gcs_server", "azure_server"])
def store(request: pytest.FixtureRequest) -> Store:
    """Each of them."""
    found: Store = request.getfixturevalue(request.param)
    return found
