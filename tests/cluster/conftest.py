"""One object store for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.s3 import S3, serving


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """A server, with a bucket that all tests share."""
    with serving(tmp_path_factory.mktemp("s3")) as found:
        yield found
