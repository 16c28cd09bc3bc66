"""The formats that open tables may have."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_incremental_dd.open_table.delta import DeltaFormat
from dbt_incremental_dd.open_table.iceberg.iceberg import IcebergFormat
from dbt_incremental_dd.open_table.table import Format

FORMATS: Mapping[str, Format] = {"delta": DeltaFormat(), "iceberg": IcebergFormat()}
