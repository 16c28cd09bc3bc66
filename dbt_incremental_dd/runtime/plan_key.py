"""The key by which a stored plan is known to be this user's own.

Whoever can write the state root can write a plan, and a plan's expressions are run. So each plan has a keyed hash
(HMAC-SHA256, RFC 2104), and the key is not under the state root: it is the text of the environment variable
``DD_PLAN_KEY``, which machines may share, else a random file of the user's own.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
from functools import lru_cache
from pathlib import Path

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.storage.exclusive import create

VARIABLE = "DD_PLAN_KEY"
_SHORTEST = 16
_LOG = logging.getLogger(__name__)


class PlanKey:
    """``id``: tells keys apart, and says nothing of the key."""

    def __init__(self, secret: bytes, *, is_lasting: bool = True) -> None:
        self._secret = secret
        self.is_lasting = is_lasting
        """Whether later processes have it, so that there is a use in storing what it has signed."""
        self.id = self._hash("id")[:12]

    def sign(self, text: str) -> str:
        """The text's keyed hash."""
        return self._hash(f"plan\n{text}")

    def has_signed(self, text: str, signature: object) -> bool:
        """Whether that is the text's keyed hash, in a time that does not depend on where they differ."""
        return isinstance(signature, str) and hmac.compare_digest(self.sign(text).encode(), signature.encode())

    def _hash(self, text: str) -> str:
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()


def plan_key() -> PlanKey:
    """The user's key. Raises ConfigError where the environment variable holds one that can be guessed."""
    given = os.environ.get(VARIABLE)
    if not given:
        return _of_file(_path())
    if len(given) < _SHORTEST:
        raise ConfigError(
            f"the environment variable {VARIABLE} has {len(given)} characters",
            f"Give it at least {_SHORTEST} random ones: openssl rand -hex 32.",
        )
    return PlanKey(given.encode())


def _path() -> Path:
    """In the folder for state of the XDG Base Directory Specification."""
    base = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(base) if os.path.isabs(base) else Path(os.path.expanduser("~/.local/state"))
    return folder / "dbt-incremental-dd" / "plan.key"


@lru_cache(maxsize=8)
def _of_file(path: Path) -> PlanKey:
    """The file's key; one for this process alone where there can be no such file, or others may read it."""
    try:
        _make(path)
        if path.stat().st_mode & 0o077 or path.stat().st_uid != os.geteuid():
            _LOG.warning("others than this user may read %s: stored plans are not used", path)
            return PlanKey(secrets.token_bytes(32), is_lasting=False)
        return PlanKey(bytes.fromhex(path.read_text().strip()))
    except (OSError, ValueError, RuntimeError) as error:
        _LOG.warning("%s cannot be used: stored plans are not used (%s)", path, error)
        return PlanKey(secrets.token_bytes(32), is_lasting=False)


def _make(path: Path) -> None:
    """Makes the file where there is none; of several processes one does, and none sees a part of it."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    create(str(path), secrets.token_hex(32).encode(), mode=0o600, is_synced=True)
