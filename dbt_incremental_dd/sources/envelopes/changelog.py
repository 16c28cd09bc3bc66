"""Envelope ``changelog``: each record says how a row's multiplicity changes, by a number or an operation's name."""

from __future__ import annotations

from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.envelopes.envelope import Change, Taking
from dbt_incremental_dd.trace.read import consolidate, quoted

_PLUS = ("i", "+i", "insert", "c", "create", "r", "u+", "+u", "update_after", "update_postimage", "+1", "1")
_MINUS = ("d", "-d", "delete", "u-", "-u", "update_before", "update_preimage", "-1")


def change(taking: Taking) -> Change:
    """The sums of equal rows' diffs. Raises SourceError for an operation or a diff that says nothing."""
    spec = taking.spec
    column = quoted(str(spec.diff_column or spec.op_column))
    if spec.diff_column:
        diff = column.cast("bigint")
    else:
        name = F.lower(F.trim(column.cast("string")))
        diff = F.when(name.isin(*_PLUS), 1).when(name.isin(*_MINUS), -1).cast("bigint")
    marked = taking.records.frame.withColumn(DIFF, diff)
    bad = marked.where(F.col(DIFF).isNull()).limit(1).collect()
    if bad:
        value = bad[0][str(spec.diff_column or spec.op_column)]
        raise SourceError(
            f"source {spec.name}: column {spec.diff_column or spec.op_column} holds {value!r}, which is no change",
            f"It may hold a whole number, or one of {', '.join((*_PLUS, *_MINUS))}.",
        )
    updates = consolidate(marked.select(*map(quoted, taking.schema.names), DIFF))
    return Change(taking.changed(updates), False)


def visible(spec: SourceSpec, names: tuple[str, ...]) -> tuple[str, ...]:
    """All of the record's but the one that says what happens to the row."""
    hidden = {str(spec.diff_column or spec.op_column).lower()}
    return tuple(name for name in names if name.lower() not in hidden)
