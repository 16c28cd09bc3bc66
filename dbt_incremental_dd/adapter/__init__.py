"""The dbt adapter ``differential``: dbt-spark's session method, and the materialization of that name."""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.differential.credentials import DifferentialCredentials
from dbt.adapters.differential.impl import DifferentialAdapter
from dbt.adapters.differential.target import install
from dbt.include import differential

install()

Plugin = AdapterPlugin(
    adapter=DifferentialAdapter,
    credentials=DifferentialCredentials,
    include_path=differential.PACKAGE_PATH,
    dependencies=["spark"],
    project_name="dbt_differential",
)
