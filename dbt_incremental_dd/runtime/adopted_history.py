"""A table of versions, such as dbt's snapshots keep, taken over as a new history's first contents.

The query is computed as in an initial load. What its rows differ in from the table's open versions is the history's
first change, in the same commit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dbt_incremental_dd.core.errors import AdoptionError
from dbt_incremental_dd.core.manifest import Adopted
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.history.intervals import intervals
from dbt_incremental_dd.history.stored import GivenVersions, current_rows, is_open
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.engine import Measure
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.runtime.adoption import Adoption
from dbt_incremental_dd.runtime.kept_history import KeptHistory
from dbt_incremental_dd.runtime.output import OutputDelta, WrittenBatch, output_delta
from dbt_incremental_dd.runtime.request import Outcome, Strategy
from dbt_incremental_dd.runtime.verified_history import overlapping
from dbt_incremental_dd.runtime.work import Work
from dbt_incremental_dd.trace.spark_reader import quote_name

_END_OF_TIME = "TIMESTAMP'9000-01-01 00:00:00'"
"""From here on a time is no version's end, but somebody's mark of an open one."""


class AdoptedHistoryWork(Work):
    """The versions are the table's, and what follows from the query's rows."""

    def __init__(self, adoption: Adoption, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._adoption = adoption

    def do(self, strategy: Strategy, *, afresh: bool = False, fails_as_one: bool = False) -> Outcome:
        outcome = super().do("initial", afresh=afresh, fails_as_one=fails_as_one)
        assert self._adopted is not None
        return replace(outcome, strategy=strategy, why=self._adopted.message)

    def _delta(self, context: Context, rows: Relation | None, *, subtract: bool) -> OutputDelta:
        kept = self._kept
        assert kept is not None
        history, name = kept.history, self._request.name
        moments = history.names.values()
        versions = self._adoption.rows(context, self._schema, self._schema.names, moments=moments).materialized()
        _require_continuable(self._adoption, kept, versions)
        query = output_delta(context, self._compiled, rows, lambda _: current_rows(history, versions, kept.query.names))
        change = None if query.change is None else query.change.consolidate()
        made = intervals(history, change, GivenVersions(versions), at=self._at, model=name)
        whole = plus([versions, None if made is None else made.columns(self._schema.names)])
        return OutputDelta(None if whole is None else replace(whole.consolidate(), positive=True))

    def _first_rows(self, context: Context, batch: WrittenBatch, strategy: Strategy) -> Adopted | None:
        verified = "" if self._adoption.verify == "none" else "verified: its versions do not overlap"
        return Adopted(self._adoption.source, self._at, verified)


def _require_continuable(adoption: Adoption, kept: KeptHistory, versions: Relation) -> None:
    """Raises AdoptionError where the history could not go on from the versions."""
    history, through = kept.history, quote_name(kept.history.names["to"])
    has_other_end = f"NOT {is_open(history)} AND ({through} IS NULL OR {through} >= {_END_OF_TIME})"
    others = versions.filter(Expr(has_other_end)).num_rows()
    if others:
        raise _refused(
            adoption,
            f"{others:,} of its versions have no end, or one in the year 9000 or later, and open ones have the end "
            f"{history.open_end}",
            "Set dbt_valid_to_current to what the table has.",
        )
    if history.key:
        opened = versions.filter(Expr(is_open(history)))
        counted = opened.group_by(history.key, [Measure(DIFF, "sum", Expr(DIFF), "BIGINT")])
        several = counted.filter(Expr(f"{DIFF} > 1")).num_rows()
        if several:
            raise _refused(
                adoption,
                f"{several:,} of its keys have more than one open version",
                "Correct unique_key, or the table.",
            )
    wrong = 0 if adoption.verify == "none" else overlapping(history, versions.frame)
    if wrong:
        raise _refused(
            adoption,
            f"{wrong:,} of its versions overlap",
            "Correct them; or set adopt.verify: none, which takes them as they are.",
        )


def _refused(adoption: Adoption, wrong: str, remedy: str) -> AdoptionError:
    return AdoptionError(
        f"{adoption.model}: {adoption.source} cannot be adopted: {wrong}", f"{remedy} Nothing was changed."
    )
