"""Whether an observer is configured, by the profile or by the environment that its library reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def lineage_is_wanted(settings: Mapping[str, Any]) -> bool:
    """Whether events go to OpenLineage: a url, or one of the files that its client looks for."""
    if _is_true("OPENLINEAGE_DISABLED"):
        return False
    names = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT", "OPENLINEAGE__TRANSPORT__TYPE")
    if settings.get("url") or any(os.environ.get(name) for name in names):
        return True
    folders = (os.getcwd(), os.path.expanduser("~/.openlineage"))
    return any(os.path.isfile(os.path.join(folder, "openlineage.yml")) for folder in folders)


def traces_are_wanted(settings: Mapping[str, Any]) -> bool:
    """Whether spans go to OpenTelemetry: an endpoint, or an exporter that is named."""
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if _is_true("OTEL_SDK_DISABLED") or exporter == "none":
        return False
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return bool(exporter or settings.get("endpoint") or any(os.environ.get(name) for name in names))


def _is_true(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() == "true"
