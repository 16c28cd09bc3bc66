"""Adopted rows against Spark's answer to the query, before they are committed: all, or those of some values.

A sample compares all rows, of the answer and of the table, that have one of a few hundred values in one column: values
of random rows of the table, and of random rows of the inputs that they come from, so that rows that the table lacks are
found too. The condition is put on the query, and Spark's optimizer moves it to the inputs. Which column that may be
follows from the plan (``differential.origins``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import AdoptionError, ConfigError
from dbt_incremental_dd.core.manifest import Adopted
from dbt_incremental_dd.core.schema import DIFF, Schema
from dbt_incremental_dd.core.types import BOOLEAN, DATE, INTEGERS, STRING, Decimal
from dbt_incremental_dd.differential.iterate import Iterate
from dbt_incremental_dd.differential.origins import Origin, origins
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.relation.relation import Relation, negated, plus
from dbt_incremental_dd.relation.stored import read
from dbt_incremental_dd.relation.workspace import if_few
from dbt_incremental_dd.runtime.output import WrittenBatch, discard, schema_with_diff
from dbt_incremental_dd.runtime.recompute import recomputed
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.spark_multiset import multiset
from dbt_incremental_dd.trace.spark_reader import quoted
from dbt_incremental_dd.trace.spark_to_arrow import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from dbt_incremental_dd.frontend.parsed import ParsedQuery
    from dbt_incremental_dd.render.context import Context
    from dbt_incremental_dd.runtime.adoption import Adoption
    from dbt_incremental_dd.runtime.stored_plan import Compiled

_VALUES = 200
"""About as many are drawn from the table, and from each input's column."""
_SHOWN = 3
"""Differing rows that an error shows of each kind."""
_FEW = 1_000
"""Differing rows that are counted."""
_LONGEST = 200
"""Characters of a row that it shows."""
_DRAWN = (*INTEGERS, STRING, DATE, BOOLEAN)
"""Types of values that a condition names; decimals too."""


@dataclass(frozen=True)
class AdoptionCheck:
    """``context``: the run's, in which the model begins; ``compiled``: of its ``query`` over ``inputs``."""

    context: Context
    query: ParsedQuery
    inputs: Mapping[str, Input]
    compiled: Compiled

    def adopted(self, adoption: Adoption, place: CollectionStore, batch: WrittenBatch) -> Adopted:
        """For the manifest, once the rows that were written are verified. Raises AdoptionError with some of the rows
        where they are not the query's, and ConfigError where they cannot be compared; then nothing is left of them."""
        columns = schema_with_diff(self.compiled.schema)
        rows = read(self.context.workspace, place.trace_uri, batch.files, columns, most=0)
        try:
            told = _Comparison(self, rows).told(adoption)
        except Exception:
            discard(self.context.storage, place, batch)
            raise
        return Adopted(adoption.source, self.context.at, told)


@dataclass(frozen=True)
class _Comparison:
    """``rows``: what would be stored of the model ``of``, with its columns."""

    of: AdoptionCheck
    rows: Relation

    def told(self, adoption: Adoption) -> str:
        """By what the rows were verified, in words; empty if they were not to be."""
        if adoption.verify == "none":
            return ""
        if any(isinstance(node, Iterate) for node in each_once(self.of.compiled.plan.root)):
            raise ConfigError(
                f"{adoption.model}: the rows of a recursion cannot be verified before they are adopted",
                "Set adopt.verify: none, and run `dbt-dd verify` afterwards.",
            )
        column = self._column if adoption.verify == "sample" else None
        if column is not None:
            values = self._values(column)
            told = f"verified by a sample: the rows of {len(values):,} values of {column}"
            self._compare(adoption, column, values)
            return told
        self._compare(adoption, "", frozenset())
        reason = "" if adoption.verify == "whole" else ", for no column's values can be looked up alone"
        return f"verified whole{reason}"

    @cached_property
    def _drawn(self) -> Mapping[str, frozenset[Origin]]:
        """The columns of which a sample may be, with where their values come from."""
        types = {column.name: column.type for column in self.of.compiled.schema}
        found = origins(self.of.compiled.plan)
        return {n: of for n, of in found.items() if types[n] in _DRAWN or isinstance(types[n], Decimal)}

    @cached_property
    def _some(self) -> Mapping[str, list[Any]]:
        """Values of random rows of the table."""
        frame = self.rows.frame.select(*map(quoted, self._drawn))
        return dict(_drawn_from(frame, self.rows.estimate).to_pydict()) if self._drawn else {}

    @property
    def _column(self) -> str | None:
        """The column with the most values, so that each has few rows."""
        return max(self._drawn, key=lambda name: len(set(self._some[name])), default=None)

    def _values(self, column: str) -> frozenset[Any]:
        values = set(self._some[column])
        for origin in self._drawn[column]:
            values.update(self._of_input(origin))
        return frozenset(values)

    def _of_input(self, origin: Origin) -> Iterable[Any]:
        source = self.of.context.inputs[origin.collection]
        files, wanted = source.log.summands(source.t1), Schema((_named(source.schema, origin.column),))
        rows = multiset(self.of.context.spark, source.log.uri, files, wanted, source.t1)
        return set(_drawn_from(rows.drop(DIFF), total_rows(files)).column(0).to_pylist())

    def _compare(self, adoption: Adoption, column: str, values: frozenset[Any]) -> None:
        plan = self.of.compiled.plan
        answer = recomputed(self.of.context, self.of.query, self.of.inputs, plan, of_files=True)
        answer = answer.select(list(zip(plan.names, plan.root.columns, strict=True)))
        sides = [answer, self.rows]
        if column:
            sides = [replace(side, rows=side.frame.where(_among(column, values))) for side in sides]
        difference = plus([sides[0], negated(sides[1])])
        assert difference is not None
        frame = difference.consolidate().frame
        few = if_few(frame, _FEW)
        found = few.arrow if few is not None else to_arrow(frame, _FEW)
        if found.num_rows:
            told = "; ".join(_shown(found.to_pylist(), list(plan.names)))
            count = f"{found.num_rows:,}" if few is not None else f"more than {_FEW:,}"
            raise AdoptionError(
                f"{adoption.model}: {adoption.source} cannot be adopted, for its rows are not the query's: "
                f"{count} rows differ; {told}",
                "Nothing was changed. Bring the table up to date and run again, or remove `adopt` so that the model is "
                "computed. Sums of floats and ties may differ for no fault: adopt.verify: none takes the rows as they "
                "are.",
            )


def _named(schema: Schema, name: str) -> Any:
    return next(column for column in schema if column.name == name)


def _drawn_from(frame: DataFrame, rows: int) -> Any:
    """About ``_VALUES`` random rows, all if there are not many more, as an Arrow table."""
    share = 2 * _VALUES / max(rows, 1)
    return to_arrow(frame if share >= 1 else frame.sample(share / 2))


def _among(column: str, values: frozenset[Any]) -> Column:
    found = quoted(column).isin([value for value in values if value is not None])
    return found | F.isnull(quoted(column)) if None in values else found


def _shown(rows: list[dict[str, Any]], names: list[str]) -> Iterator[str]:
    """Some of the rows that one of both has more of."""
    for kind, sign in (("missing", 1), ("unexpected", -1)):
        some = [row for row in rows if row[DIFF] * sign > 0][:_SHOWN]
        if some:
            texts = (str(tuple(row[name] for name in names))[:_LONGEST] for row in some)
            yield f"{kind}: {', '.join(texts)}"
