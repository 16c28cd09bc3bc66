"""What became of a model, as dbt's responses."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt.adapters.contracts.connection import AdapterResponse

from dbt_incremental_dd.core.time import format_time
from dbt_incremental_dd.runtime.request import Outcome


@dataclass
class DifferentialResponse(AdapterResponse):
    """What a model's run did; lands in ``run_results.json``."""

    strategy: str = ""
    as_of: str = ""
    input_rows: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    rows_read: int = 0
    rows_found: int = 0
    bytes_read: int = 0
    seconds: float = 0.0
    fallbacks: list[str] = field(default_factory=list)
    held_back_by: str = ""

    @staticmethod
    def of(outcome: Outcome) -> DifferentialResponse:
        """The response for an outcome."""
        return DifferentialResponse(
            _message=outcome.message,
            rows_affected=outcome.rows_added + outcome.rows_removed,
            strategy=outcome.strategy,
            as_of=format_time(outcome.as_of),
            input_rows=outcome.input_rows,
            rows_added=outcome.rows_added,
            rows_removed=outcome.rows_removed,
            rows_read=outcome.reads.rows,
            rows_found=outcome.reads.found,
            bytes_read=outcome.reads.bytes,
            seconds=round(outcome.seconds, 3),
            fallbacks=list(outcome.fallbacks),
            held_back_by=outcome.held_back_by,
        )


@dataclass
class PreviewResponse(AdapterResponse):
    """What a model would be: of `--empty` and `--sample`."""

    fallbacks: list[str] = field(default_factory=list)
