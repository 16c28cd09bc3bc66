"""The time zone that a new session has by default: Java's, found without Java."""

from __future__ import annotations

import os
import zoneinfo
from collections.abc import Mapping
from pathlib import Path

_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
_VARIABLES = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_OPTION = "user.timezone"
_FILES = "/usr/share/zoneinfo/"
_SHORT = ("UTC", "GMT")
"""Names without a region that are the same zone everywhere."""
_RECENT = frozenset(("America/Ciudad_Juarez", "America/Coyhaique", "America/Nuuk", "Europe/Kyiv", "Pacific/Kanton"))
"""Not every Java knows them."""


def default_time_zone(settings: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """TZ, or the machine's own; None if Java might have another one. ``settings``: the session's."""
    options = [settings.get(name, "") for name in _JAVA_OPTIONS] + [environment.get(name, "") for name in _VARIABLES]
    if any(_OPTION in text for text in options):
        return None
    zone = environment.get("TZ") or _machines()
    is_plain = zone in _SHORT or ("/" in zone and zone not in _RECENT and zone in zoneinfo.available_timezones())
    return zone if is_plain else None


def _machines() -> str:
    """By ``/etc/localtime``; empty if that is no link, or if ``/etc/timezone`` has another name."""
    target = os.path.realpath("/etc/localtime")
    linked = target.removeprefix(_FILES) if target.startswith(_FILES) else ""
    try:
        named = Path("/etc/timezone").read_text().strip()
    except OSError:
        named = linked
    return linked if named == linked else ""
