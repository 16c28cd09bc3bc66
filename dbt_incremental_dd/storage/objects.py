"""Objects of a store, read or written by one request each: S3, GCS and Azure by ``obstore``, with the names of
options that delta-rs has, which uses the same library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dbt_incremental_dd.storage.uris import canonical

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_CLIENT = (
    *("allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only", "pool_idle_timeout"),
    *("pool_max_idle_per_host", "proxy_url", "proxy_ca_certificate", "proxy_excludes", "timeout", "user_agent"),
)
"""Options of the connections, whatever the store."""
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE", "AWS_WEB_IDENTITY_TOKEN_FILE")
_ATTEMPTS = 3
"""Of creating an object, where nobody answers what has become of it."""


@dataclass(frozen=True)
class Objects:
    """One bucket. Paths are within it. All methods raise OSError where the store refuses, or does not answer for long;
    FileNotFoundError for an object that is not there."""

    store: ObjectStore
    name: str

    def read(self, path: str) -> bytes:
        """The object's bytes."""
        return self.read_tagged(path)[0]

    def read_range(self, path: str, start: int, end: int) -> bytes:
        """The object's bytes from ``start`` to before ``end``."""
        import obstore

        with self._told(path):
            return obstore.get_range(self.store, path, start=start, end=end).to_bytes()

    def write(self, path: str, data: bytes) -> None:
        """Replaces the object."""
        import obstore

        with self._told(path):
            obstore.put(self.store, path, data)

    def tag(self, path: str) -> str:
        """The object's entity tag."""
        return _plain(self.head(path)["e_tag"])

    def head(self, path: str) -> Mapping[str, Any]:
        """What the store says of an object: ``path``, ``size`` (bytes), ``last_modified`` and ``e_tag``."""
        import obstore

        with self._told(path):
            return obstore.head(self.store, path)

    def listed(self, folder: str, *, recursive: bool) -> tuple[list[Mapping[str, Any]], list[str]]:
        """What the store says of the objects in a folder, as ``head`` does, and the paths of the folders there; of all
        objects below it, and no folders, if ``recursive``."""
        import obstore

        with self._told(folder):
            if recursive:
                return [one for chunk in obstore.list(self.store, prefix=folder) for one in chunk], []
            found = obstore.list_with_delimiter(self.store, prefix=folder)
            return list(found["objects"]), list(found["common_prefixes"])

    def create(self, path: str, data: bytes) -> str | None:
        """Creates the object, whose entity tag it returns; None where there is another one.

        No two writers may create the same bytes: where an answer was lost, an object of these bytes is this one.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError

        failed: Exception = OSError()
        for _ in range(_ATTEMPTS):
            try:
                return _plain(obstore.put(self.store, path, data, mode="create", use_multipart=False)["e_tag"])
            except AlreadyExistsError:
                found, tag = self.read_tagged(path)
                return tag if found == data else None
            except (BaseError, ValueError) as error:
                failed = error
            try:
                found, tag = self.read_tagged(path)
            except FileNotFoundError:
                continue
            return tag if found == data else None
        raise OSError(f"{self.name}/{path}: {_reason(failed)}") from failed

    def copy(self, source: str, target: str) -> None:
        """Makes ``target`` an object of the same bytes, which do not leave the store."""
        import obstore

        with self._told(source):
            obstore.copy(self.store, source, target)

    def below(self, folder: str) -> dict[str, float]:
        """The objects below a folder: their paths within it, and when they were written (s since 1970)."""
        found, _ = self.listed(folder, recursive=True)
        return {one["path"].removeprefix(f"{folder}/"): one["last_modified"].timestamp() for one in found}

    def after(self, folder: str, offset: str) -> dict[str, str]:
        """The objects below a folder whose paths come after ``offset``: these paths, and their entity tags. One request
        for each thousand of them."""
        import obstore

        with self._told(folder):
            found = [one for chunk in obstore.list(self.store, prefix=folder, offset=offset) for one in chunk]
        return {one["path"]: _plain(one["e_tag"]) for one in found}

    def delete(self, paths: Sequence[str]) -> None:
        """Removes the objects that are there."""
        import obstore

        if not paths:
            return
        with self._told(paths[0]):
            try:
                obstore.delete(self.store, paths)
                return
            except FileNotFoundError:  # not all stores take it for granted that one may be gone
                pass
            for path in paths:
                with suppress(FileNotFoundError):
                    obstore.delete(self.store, path)

    def read_tagged(self, path: str) -> tuple[bytes, str]:
        """The object's bytes, and its entity tag."""
        import obstore

        with self._told(path):
            found = obstore.get(self.store, path)
            return found.bytes().to_bytes(), _plain(found.meta["e_tag"])

    @contextmanager
    def _told(self, path: str) -> Iterator[None]:
        """The library's errors as OSError."""
        from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

        try:
            yield
        except FileNotFoundError:
            raise
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise PermissionError(f"{self.name}/{path}: {_reason(error)}") from error
        except (BaseError, ValueError) as error:
            raise OSError(f"{self.name}/{path}: {_reason(error)}") from error


def objects_of(uri: str, options: Mapping[str, str]) -> tuple[Objects, str]:
    """The bucket of a URI, and the path within it."""
    parts = urlsplit(uri)
    return _bucket(f"{parts.scheme}://{parts.netloc}", tuple(sorted(canonical(uri, options).items()))), parts.path[1:]


@lru_cache(maxsize=16)
def _bucket(uri: str, options: tuple[tuple[str, str], ...]) -> Objects:
    """One for all uses of the same options, because it keeps connections."""
    from obstore.store import from_url

    settings, client = settings_of(uri, options)
    more = {} if any(name.upper() in _KEYS for name in settings) else _profile(uri)
    return Objects(from_url(uri, config=settings, client_options=client, **more), uri)  # type: ignore[call-overload]


def settings_of(uri: str, options: Iterable[tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Those of the options that obstore knows: the store's, and its connections'."""
    settings, client = {}, {}
    for name, value in options:
        plain = re.sub("^(aws|google|azure)_", "", name.lower())
        if plain in _CLIENT:
            client[plain] = value
        elif _is_known(uri, name):
            settings[name] = value
    return settings, client


def _profile(uri: str) -> dict[str, Any]:
    """For S3 the credentials of AWS's own files, by boto3, where it is installed and finds some. What is left to the
    library are those of the environment, of a machine, a container or a web identity."""
    if not uri.startswith("s3"):
        return {}
    try:
        from boto3 import Session
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return {}
    session = Session()
    return {"credential_provider": Boto3CredentialProvider(session)} if session.get_credentials() else {}


def _is_known(uri: str, name: str) -> bool:
    """Whether it is a setting of the store, and none of Spark's, or of the environment's for another program."""
    from obstore.exceptions import UnknownConfigurationKeyError
    from obstore.store import from_url

    prefix = name.split("_")[0]
    unknown = f"{prefix}_is_this_known"
    try:  # a name that is not known ends it, before anything is made
        from_url(uri, config={name: "", unknown: ""})  # type: ignore[call-overload]
    except UnknownConfigurationKeyError as error:
        return unknown.lower() in str(error).lower()
    return True


def _plain(tag: str | None) -> str:
    """Some stores quote an entity tag in one answer, and not in another."""
    return (tag or "").strip('"')


def _reason(error: Exception) -> str:
    """The library's message without its source, which follows."""
    return str(error).split("\n\nDebug source")[0]
