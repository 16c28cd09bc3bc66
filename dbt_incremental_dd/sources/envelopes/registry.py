"""The envelopes, by the names that the setting ``envelope`` has for them: an import and a line each."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_incremental_dd.sources.envelopes.append import Append
from dbt_incremental_dd.sources.envelopes.changelog import Changelog
from dbt_incremental_dd.sources.envelopes.debezium import Debezium
from dbt_incremental_dd.sources.envelopes.envelope import Envelope
from dbt_incremental_dd.sources.envelopes.replica import REPLICA
from dbt_incremental_dd.sources.envelopes.snapshot import Snapshot
from dbt_incremental_dd.sources.envelopes.upsert import Upsert

DEFAULT: Envelope = Snapshot()
_ALL: tuple[Envelope, ...] = (
    Append(),
    Upsert(),
    Debezium(),
    Changelog(),
    DEFAULT,
    REPLICA,
)
ENVELOPES: Mapping[str, Envelope] = {envelope.name: envelope for envelope in _ALL}
