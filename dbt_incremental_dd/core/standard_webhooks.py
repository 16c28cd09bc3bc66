"""Headers of signed requests, as of Standard Webhooks 1.0 (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hmac
import time as clock

from dbt_incremental_dd.core.errors import ConfigError

SECRET = "DBT_DD_WEBHOOK_SECRET"
"""The environment variable that has the secret."""


def secret_key(text: str) -> bytes:
    """The key's bytes, of a text that is perhaps ``whsec_`` and base64. Raises ConfigError where it is not what its
    prefix says."""
    if not text.startswith("whsec_"):
        return text.encode()
    try:
        return base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise ConfigError(f"the secret in {SECRET} begins with whsec_, and is not base64", "Correct it.") from error


def signed_headers(id: str, body: bytes, key: bytes) -> dict[str, str]:
    """``webhook-id``, ``webhook-timestamp`` and, with a key, ``webhook-signature``, of a JSON body."""
    seconds = str(int(clock.time()))
    headers = {"content-type": "application/json", "webhook-id": id, "webhook-timestamp": seconds}
    if key:
        digest = hmac.digest(key, b".".join((id.encode(), seconds.encode(), body)), "sha256")
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers
