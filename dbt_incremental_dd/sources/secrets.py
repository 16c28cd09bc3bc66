"""Secrets among a source's options: named in the settings, read from the environment when a model runs.

dbt writes settings to ``target/``. So an option may be ``{env_var: NAME}``: what is written is the variable's name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from dbt_incremental_dd.core.errors import ConfigError, DifferentialError

REFERENCE = "env_var"
_SECRET_NAME = re.compile(
    r"passw|passphrase|(?:^|[._-])(?:pass|pwd)$|secret|token|credential|jaas|auth\.user\.info|private"
    r"|(?:api|account).?key|keystore\.key|key\.pem",
    re.IGNORECASE,
)
_SECRET_INSIDE = re.compile(
    r"(?:^|[\s?&;])\w*(?:passw|passphrase|pwd|secret|token)\w*\s*=\s*('(?:[^'\\]|\\.)+'|[^\s&;']+)", re.IGNORECASE
)
"""One among the parameters of a URL, or of a connection in the form of ``host=h password=x``."""
_HIDDEN = "***"


def resolved(owner: str, options: Mapping[str, Any]) -> tuple[dict[str, str], frozenset[str]]:
    """The options' values, and those of them that are secret. ``owner``: whose options they are, for messages. Raises
    ConfigError for a variable that is not set."""
    values, secrets = {}, set[str]()
    for key, value in options.items():
        if isinstance(value, Mapping):
            values[str(key)] = _of_environment(owner, str(key), value)
            secrets.add(values[str(key)])
        else:
            values[str(key)] = str(value).lower() if isinstance(value, bool) else str(value)
            if _is_secret(str(key), values[str(key)]):
                secrets.add(values[str(key)])
    return values, frozenset(_forms(secrets))


def literal_secrets(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of options that hold a secret itself, where they should name a variable."""
    return tuple(str(key) for key, value in options.items() if isinstance(value, str) and _is_secret(str(key), value))


def without(secrets: frozenset[str], error: DifferentialError) -> DifferentialError | None:
    """The error without the secrets; None where neither it nor what has caused it shows any."""
    if not any(secret in text for text in _texts(error) for secret in secrets):
        return None
    hidden = type(error)(_hidden(secrets, error.message), _hidden(secrets, error.remedy))
    return hidden.with_traceback(error.__traceback__)


def _of_environment(owner: str, key: str, value: Mapping[str, Any]) -> str:
    if list(value) != [REFERENCE] or not isinstance(value[REFERENCE], str):
        raise ConfigError(
            f"{owner}: options.{key} is neither a text nor {{{REFERENCE}: NAME}}",
            "Write the value, or name the environment variable that holds it.",
        )
    found = os.environ.get(value[REFERENCE])
    if not found:
        raise ConfigError(
            f"{owner}: options.{key} is in the environment variable {value[REFERENCE]}, which is not set",
            "Set it where dbt runs.",
        )
    return found


def _is_secret(key: str, value: str) -> bool:
    if _SECRET_INSIDE.search(value):
        return True
    if "://" in value:
        try:
            return bool(urlsplit(value).password)
        except ValueError:  # no URL, but it looks like one that holds something
            return "@" in value
    return bool(value and _SECRET_NAME.search(key) and not re.search(r"location|file|path", key, re.IGNORECASE))


def _forms(secrets: set[str]) -> Iterator[str]:
    """The secrets as they may be shown; of a URL or a connection also the password in it."""
    for secret in secrets:
        yield secret
        for part in _SECRET_INSIDE.findall(secret):
            yield from {part.strip("'"), unquote(part.strip("'"))}
        inside = re.search(r"://[^:@/]*:(.*)@", secret, re.DOTALL)
        if inside and inside[1]:
            yield from {inside[1], unquote(inside[1])}


def _texts(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


def _hidden(secrets: frozenset[str], text: str) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text
