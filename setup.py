"""Where the packages lie: the dbt adapter and its macros are folders of this project, installed under ``dbt/``.

Everything else about the package is in pyproject.toml.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["dbt_incremental_dd", "dbt_incremental_dd.*"], exclude=["dbt_incremental_dd.adapter"]),
        "dbt.adapters.differential",
        "dbt.include.differential",
        "airflow_differential",
    ],
    package_dir={
        "dbt.adapters.differential": "dbt_incremental_dd/adapter",
        "dbt.include.differential": "macros",
        "airflow_differential": "airflow_plugins/airflow_differential",
    },
    package_data={
        "dbt_incremental_dd": ["py.typed", "runtime/*.properties", "serve/static/*"],
        "airflow_differential": ["static/*"],
        "dbt.include.differential": ["dbt_project.yml", "**/*.sql", "*.sql"],
    },
)
