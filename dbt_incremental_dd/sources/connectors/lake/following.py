"""What connectors of lake tables have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.lake.positions import positions
from dbt_incremental_dd.sources.poll import PollRequest
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


def refuse_other_columns(request: PollRequest[SourceSpec], schema: Schema) -> None:
    """Raises SourceError where the table's columns are not those stored; new ones are NULL in old rows."""
    stored, spec = request.stored, request.spec
    if stored is None or stored == schema:
        return
    missing = [c.name for c in stored if schema.find(c.name) is None]
    changed = [c.name for c in stored if (own := schema.find(c.name)) and own != c]
    if missing or changed or not spec.envelope.takes_new_columns:
        added = [c.name for c in schema if stored.find(c.name) is None]
        shown = f"new: {added or 'none'}, gone: {missing or 'none'}, other type or name: {changed or 'none'}"
        raise SourceError(
            f"source {spec.name}: its columns changed ({shown})",
            "Take it in anew: remove its folder under state_root, then run the models on it with --full-refresh.",
        )


def whole_or_error(spec: SourceSpec, reason: str) -> str:
    """A note that the table is read whole. Raises SourceError where its envelope cannot make changes of that."""
    if not spec.envelope.is_whole:
        raise SourceError(
            f"source {spec.name}: what changed in the table cannot be told: {reason}",
            f"With envelope {spec.envelope} take it in anew: remove its folder under state_root, then run the models "
            "on it with --full-refresh; or use envelope snapshot, which compares.",
        )
    return f"read whole and compared, because {reason}"
