"""Settings of sources that clients send events to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.formats.options import option
from dbt_incremental_dd.sources.setting import choice, duration, duration_if_any, setting, text, whole_number
from dbt_incremental_dd.sources.spec import SourceSpec

REMEMBER_KEYS = 7 * 86_400_000
"""Milliseconds."""
INBOX_BYTES = 1 << 30
_ENVELOPES = ("append", "upsert", "changelog", "debezium")
_NOT_LINES = ("multiLine", "lineSep", "encoding", "charset")


@dataclass(frozen=True, kw_only=True)
class HttpSpec(SourceSpec):
    """``remember_keys`` in ms: for how long after its intake a request that is sent again is known. ``inbox_bytes``:
    what may wait for an intake."""

    connector: ClassVar[str] = "http"
    reads: ClassVar[str] = "events that are sent to the server"
    record_settings: ClassVar[tuple[str, ...]] = ("columns", "options")

    event_time: str | None = setting(text)
    keep: int | None = setting(duration_if_any)
    malformed: Literal["error", "set_aside"] = setting(choice("error", "set_aside"), "set_aside")
    remember_keys: int = setting(duration(REMEMBER_KEYS), REMEMBER_KEYS)
    inbox_bytes: int = setting(whole_number(INBOX_BYTES), INBOX_BYTES)

    def check(self) -> None:
        """Raises ConfigError unless all columns are typed, and an event is a record by itself."""
        if self.envelope.name not in _ENVELOPES:
            raise ConfigError(
                f"source {self.name}: connector http takes single events, which are no {self.envelope}",
                f"Set envelope to {', '.join(_ENVELOPES)}.",
            )
        if not self.columns or self.untyped:
            what = f"column {self.untyped[0]} has no data_type" if self.untyped else "no columns are declared"
            raise ConfigError(
                f"source {self.name}: {what}, and connector http cannot find types in events that are still to come",
                "Give all columns a data_type.",
            )
        if self.envelope.name == "upsert" and not self.settings.order_by:
            raise ConfigError(
                f"source {self.name}: connector http needs order_by for envelope upsert, since requests have no order",
                "Set order_by to columns by which the latest event of a key is found.",
            )
        wrong = next((name for name in _NOT_LINES if option(self.options, name, "")), None)
        if wrong is not None:
            raise ConfigError(
                f"source {self.name}: options.{wrong} is not for connector http, whose events are lines in UTF-8",
                "Leave it out.",
            )
