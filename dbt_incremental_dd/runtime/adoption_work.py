"""A new model's first contents taken over from a table, in place of computing them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dbt_incremental_dd.core.manifest import Adopted
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.runtime.adoption import Adoption
from dbt_incremental_dd.runtime.adoption_check import AdoptionCheck
from dbt_incremental_dd.runtime.output import WrittenBatch
from dbt_incremental_dd.runtime.request import Outcome, Strategy
from dbt_incremental_dd.runtime.work import Work


class AdoptionWork(Work):
    """The rows are the table's, once they are verified. States are left to the runs that need them."""

    def __init__(self, adoption: Adoption, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._adoption = adoption

    def do(self, strategy: Strategy, *, afresh: bool = False, fails_as_one: bool = False) -> Outcome:
        outcome = super().do(strategy, afresh=afresh, fails_as_one=fails_as_one)
        return outcome if self._adopted is None else replace(outcome, why=self._adopted.message)

    def _rows(self, context: Context, strategy: Strategy) -> Relation | None:
        return self._adoption.rows(context, self._compiled.schema, self._compiled.plan.root.columns)

    def _first_rows(self, context: Context, batch: WrittenBatch, strategy: Strategy) -> Adopted | None:
        check = AdoptionCheck(context, self._request.query, self._inputs, self._compiled)
        return check.adopted(self._adoption, self._current.place, batch)
