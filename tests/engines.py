"""Which engine computes what is small: by default the driver, where it can."""

from __future__ import annotations

from dbt_incremental_dd.core.thresholds import Thresholds

IN_SPARK = Thresholds.of({}, "spark")
"""Nothing is computed on the driver, nor by one task because it is little: all is as with deltas that are too large for
either."""


def engine(is_in_spark: bool) -> Thresholds:
    """Spark for everything, or the driver for what is small."""
    return IN_SPARK if is_in_spark else Thresholds()
