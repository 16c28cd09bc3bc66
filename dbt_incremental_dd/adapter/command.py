"""dbt's command as observers know it."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from dbt.flags import get_flags
from dbt_common.invocation import get_invocation_id, get_invocation_started_at

from dbt_incremental_dd.observe.command import Command
from dbt_incremental_dd.observe.settings import observe_settings
from dbt_incremental_dd.trace.layout import Storage


def current_command(config: Any, storage: Storage) -> Command:
    """The one that runs."""
    return Command(
        id=get_invocation_id(),
        name=str(getattr(get_flags(), "WHICH", None) or "run"),
        project=str(config.project_name),
        began=get_invocation_started_at().replace(tzinfo=UTC).timestamp(),
        storage=storage,
        spark=config.credentials.settings,
        settings=observe_settings(config.credentials.observe),
    )
