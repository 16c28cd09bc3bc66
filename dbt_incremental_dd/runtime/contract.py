"""A model's contract: the columns that it must have, and constraints that its rows must keep to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from dbt_incremental_dd.core.errors import ColumnsError, ConfigError
from dbt_incremental_dd.core.foreign import is_foreign, reason
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.spark_reader import quote_name, struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

ConstraintType = Literal["not_null", "check", "unique", "primary_key"]
CONSTRAINT_TYPES: tuple[ConstraintType, ...] = get_args(ConstraintType)


@dataclass(frozen=True)
class Constraint:
    """What holds of every row, or of every key, of a model.

    A ``check`` holds where its ``expression`` is true or NULL. ``unique`` keys of which a column is NULL may be there
    several times; a ``primary_key`` has no NULL.
    """

    type: ConstraintType
    columns: tuple[str, ...] = ()
    expression: str = ""
    name: str = ""

    @property
    def title(self) -> str:
        """The constraint as messages name it."""
        what = f"check ({self.expression})" if self.type == "check" else self.type
        where = f" on {', '.join(self.columns)}" if self.columns else ""
        return f"constraint {self.name}, {what}{where}" if self.name else f"constraint {what}{where}"


@dataclass(frozen=True)
class Contract:
    """``columns``: names and types as SQL writes them."""

    columns: tuple[tuple[str, str], ...]
    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def text(self) -> str:
        """The contract as a manifest names it."""
        return json.dumps(asdict(self))


def proven(text: str) -> frozenset[Constraint]:
    """The constraints that stored rows keep to, by what the manifest says; none where it says nothing that is known."""
    try:
        found = json.loads(text or "{}").get("constraints", ())
        return frozenset(
            Constraint(one["type"], tuple(one["columns"]), one["expression"], one["name"]) for one in found
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return frozenset()


def require_columns(spark: SparkSession, model: str, contract: Contract, schema: Schema) -> None:
    """Raises ColumnsError where the model's columns are not those of its contract, in whatever order."""
    declared = _shown(_declared(spark, model, contract))
    found = _shown(struct(schema))
    if {(name.lower(), dtype) for name, dtype in declared} != {(name.lower(), dtype) for name, dtype in found}:
        raise ColumnsError(f"{model}: its columns are not those of its contract", declared, found)


def _declared(spark: SparkSession, model: str, contract: Contract) -> StructType:
    casts = ", ".join(f"CAST(NULL AS {dtype}) AS {quote_name(name)}" for name, dtype in contract.columns)
    try:
        return spark.sql(f"SELECT {casts}").schema
    except Exception as error:
        if not is_foreign(error):
            raise
        raise ConfigError(
            f"{model}: a data_type in its contract is none of Spark's: {reason(error)}", "Correct the contract."
        ) from error


def _shown(fields: Iterable[object]) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in fields]  # type: ignore[attr-defined]
