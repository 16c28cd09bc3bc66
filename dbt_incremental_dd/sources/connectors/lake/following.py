"""What connectors of lake tables have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.lake.positions import positions
from dbt_incremental_dd.sources.spec import SourceSpec

if TYPE_CHECKING:
    from pyroaring import BitMap64


class FullScanRequired(Exception):
    """What changed cannot be told by the table's own history; the message says why."""


Rows = tuple["BitMap64 | None", "BitMap64 | None"]
"""Of a file: only those at these positions, or all but those at these."""


def differing(plus: Sequence[BitMap64 | None], minus: Sequence[BitMap64 | None]) -> tuple[list[Rows], list[Rows]]:
    """Which of a file's rows came and which went, by the positions that were deleted in it when it came and when it
    went. Where it did both, these are the rows in which the two differ."""
    came: list[Rows] = []
    went: list[Rows] = []
    pairs = min(len(plus), len(minus))
    for pair in zip(plus[:pairs], minus[:pairs], strict=True):
        now, then = (positions() if one is None else one for one in pair)
        came += [(then - now, None)] if then - now else []
        went += [(now - then, None)] if now - then else []
    came += [(None, deleted) for deleted in plus[pairs:]]
    went += [(None, deleted) for deleted in minus[pairs:]]
    return came, went


def whole_or_error(spec: SourceSpec, reason: str) -> str:
    """A note that the table is read whole. Raises SourceError where its envelope cannot make changes of that."""
    if not spec.envelope.is_whole:
        raise SourceError(
            f"source {spec.name}: what changed in the table cannot be told: {reason}",
            f"With envelope {spec.envelope} take it in anew: remove its folder under state_root, then run the models "
            "on it with --full-refresh; or use envelope snapshot, which compares.",
        )
    return f"read whole and compared, because {reason}"
