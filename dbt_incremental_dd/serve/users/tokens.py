"""Tokens, and the digests by which a file of users names them. A token is random, so that its SHA-256 needs no salt: it
cannot be found by trying."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

_PREFIX = "sha256:"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_BYTES = 32


def new_token() -> str:
    """A random token of 256 bits, for a header, a URL or a password."""
    return secrets.token_urlsafe(_BYTES)


def digest(token: str) -> str:
    """What a file of users has of a token: ``sha256:`` and 64 hexadecimal digits."""
    return _PREFIX + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_digest(text: str) -> bool:
    """Whether the text is what ``digest`` returns."""
    return _DIGEST.fullmatch(text) is not None


def is_same(one: str, other: str) -> bool:
    """Whether two texts are the same, in a time that does not depend on how much of them is."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
