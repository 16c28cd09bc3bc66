# Daily commands. `make` alone lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Processes that run the tests; each has a Spark session of its own.
WORKERS ?= 2
# The newest pyspark for which Spark's connectors to Kafka and Delta are published.
CONNECTED := .venv-4.2
# The newest pyspark for which Iceberg's connector is published.
ICEBERG := .venv-4.1
# A DuckDB with extensions, which reads open tables.
DUCKDB := .venv-duckdb
# Releases of dbt-core, beside the one of .venv, that `make dbt-versions` runs dbt's tests with.
DBT ?= 1.10
# Tests start many short JVMs. One that maps Spark's classes from an archive starts in half the time; for the rest see
# tests/short_lived.py.
SHORT_LIVED = $(shell $(BIN)/python -c 'from tests.short_lived import SHORT_LIVED; print(SHORT_LIVED)')
JVM = SPARK_SUBMIT_OPTS="-XX:SharedArchiveFile=$(CURDIR)/$(1)/spark.jsa -Xlog:disable $(SHORT_LIVED) -XX:ReservedCodeCacheSize=128m"
# They start many Python processes too, which would each compile all that they import.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup java environments demo live test suite airflow test-slow torture dbt-versions $(DBT:%=dbt-%) servers kafka postgres mysql lake cluster fuzz projects tpch tpcds tpcdi nexmark lint format image docs coverage bench clean

help: ## lists the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

java:
	@java -version >/dev/null 2>&1 || { \
	  echo "Spark needs Java 17 or newer, and there is none. Install it:"; \
	  echo "  Debian, Ubuntu:  sudo apt-get install -y openjdk-17-jre-headless"; \
	  echo "  Fedora, RHEL:    sudo dnf install -y java-17-openjdk-headless"; \
	  echo "  macOS:           brew install openjdk@17"; \
	  exit 1; }

$(STAMP): pyproject.toml setup.py dbt_incremental_dd/version.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip uv
	$(BIN)/python -m uv pip install --quiet --python $(BIN)/python -e '.[dev]'
	@touch $(STAMP)

setup: java $(STAMP) ## makes .venv and installs everything into it

demo: setup ## runs the six example projects, every round checked against Spark's batch answer
	$(BIN)/python example_project/demo.py

live: setup ## opens pages at http://127.0.0.1:8580/ that move as data arrives
	$(BIN)/python example_project/live.py

test: suite airflow ## runs the tests, in two processes: WORKERS=1 on a small machine

# Of `make -j3 test servers`: the suite comes first, then Airflow's tests, which mostly wait, beside those of two servers.
airflow kafka postgres mysql lake cluster: | $(if $(filter test,$(MAKECMDGOALS)),suite)

# The JVM writes it as it ends, after Python; both have this output, for whose end `cat` waits.
%/spark.jsa: %/.installed
	SPARK_SUBMIT_OPTS="-XX:ArchiveClassesAtExit=$@ -Xlog:disable -XX:TieredStopAtLevel=1" $*/bin/python -m tests.small_query | cat

suite: setup $(VENV)/spark.jsa
	$(call JVM,$(VENV)) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

coverage: setup $(VENV)/spark.jsa ## runs the suite with its coverage measured, in processes that it starts too: folder htmlcov
	rm -f .coverage .coverage.*
	$(call JVM,$(VENV)) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
	  --cov --cov-report=term --cov-report=html

airflow: setup $(VENV)/spark.jsa
	$(call JVM,$(VENV)) $(BIN)/python -m pytest -m airflow

test-slow: setup ## runs the tests that take minutes
	$(BIN)/python -m pytest -m slow

torture: setup ## ends the process at every point, and races processes; takes an hour
	$(BIN)/python -m pytest -m torture

dbt-versions: java $(DBT:%=dbt-%) ## runs the tests of dbt's features with other releases of dbt-core: DBT="1.10 1.11"

$(DBT:%=dbt-%): dbt-%: .venv-dbt-%/spark.jsa
	$(call JVM,.venv-dbt-$*) .venv-dbt-$*/bin/python -m pytest tests/dbt --ignore tests/dbt/standard

lint: setup ## style, types, import layers, the image's and the services' files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml

image: ## builds the driver's image, by docker
	docker build --tag dbt-incremental-dd .

format: setup ## formats the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m uv pip install --quiet --python $(BIN)/python -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## builds the documentation as a site, in the folder site; a broken link is an error
	$(BIN)/python -m mkdocs build --strict
	@echo "Open site/index.html, or let '$(BIN)/python -m mkdocs serve' show it."

# An environment with another dbt-core, also with one that pyproject.toml does not allow yet.
.venv-dbt-%/.installed: $(STAMP)
	$(PYTHON) -m venv .venv-dbt-$*
	echo 'dbt-core==$*.*' >.venv-dbt-$*/dbt-core.txt
	$(BIN)/python -m uv pip install --quiet --python .venv-dbt-$*/bin/python -e '.[dev]' --override .venv-dbt-$*/dbt-core.txt
	@touch $@

# A release of DuckDB for which its extensions for Delta, Iceberg and TPC-DS are published.
$(DUCKDB)/.installed: $(STAMP)
	$(PYTHON) -m venv $(DUCKDB)
	$(BIN)/python -m uv pip install --quiet --python $(DUCKDB)/bin/python duckdb==1.5.5 pytz \
	  $(foreach name,avro delta iceberg tpcds,duckdb-extension-$(name)==1.5.5)
	@touch $@

# An environment with another pyspark: .venv-4.1, .venv-4.2. ClickHouse and Polars read tables in tests alone.
.venv-%/.installed: $(STAMP)
	$(PYTHON) -m venv .venv-$*
	$(BIN)/python -m uv pip install --quiet --python .venv-$*/bin/python -e '.[dev]' chdb polars 'pyspark[connect]==$*.*'
	@touch $@
.PRECIOUS: .venv-%/.installed .venv-dbt-%/.installed

# The longest first, so that it is not left alone at the end.
servers: cluster lake kafka postgres mysql ## all tests against real servers; half an hour

environments: java setup $(CONNECTED)/spark.jsa $(ICEBERG)/spark.jsa $(DUCKDB)/.installed ## makes the environments that tests against servers need

kafka postgres cluster: java $(CONNECTED)/spark.jsa
	$(call JVM,$(CONNECTED)) $(CONNECTED)/bin/python -m pytest -m $@

kafka: ## runs the tests against a real Kafka broker
postgres: ## runs the tests against a real PostgreSQL server: the one that is installed, or POSTGRES=18.1.0
mysql: setup $(VENV)/spark.jsa ## runs the tests against real servers of MariaDB, as installed, and MySQL, which it fetches on Debian
	$(BIN)/python -m tests.servers.mysql_packages
	$(call JVM,$(VENV)) $(BIN)/python -m pytest -m mysql tests/feeds -rs
lake: java $(CONNECTED)/spark.jsa $(ICEBERG)/spark.jsa $(DUCKDB)/.installed ## runs the tests against Delta and Iceberg tables that Spark's own connectors write
	$(call JVM,$(CONNECTED)) $(CONNECTED)/bin/python -m pytest -m lake tests/lake
	$(call JVM,$(ICEBERG)) $(ICEBERG)/bin/python -m pytest -m lake tests/lake
cluster: ## runs the tests on a Spark cluster with two workers, over Spark Connect, and on object storage

fuzz: setup ## random queries over random changes, each compared with Spark's batch answer: CASES=2000 SEED=
	$(BIN)/python -m tests.fuzz.run $(if $(CASES),--cases $(CASES)) $(if $(SEED),--seed $(SEED))

projects: setup ## a dbt project with differential everywhere against its own tables: PROJECT=folder ROUNDS= SEED= ROWS=
	$(BIN)/python -m tests.projects.run $(or $(PROJECT),tests/projects/shop) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(ROWS),--rows $(ROWS))

tpch: setup ## runs TPC-H's queries as models, every round checked against Spark's batch answer
	$(BIN)/python -m benchmarks.tpch.run

tpcds: setup $(DUCKDB)/.installed ## runs TPC-DS's 99 queries as models, every round checked against Spark's batch answer
	$(BIN)/python -m tests.tpcds.run $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED))

tpcdi: setup ## runs TPC-DI's warehouse of 49 models for some days, each day checked against Spark's batch answer
	$(BIN)/python -m benchmarks.tpcdi.run

nexmark: setup ## runs Nexmark's queries as models, every round checked against Spark's batch answer
	$(BIN)/python -m benchmarks.nexmark.run

bench: setup ## runs the benchmarks with small defaults
	$(BIN)/python benchmarks/join_aggregate.py
	$(BIN)/python -m benchmarks.adoption
	$(BIN)/python -m benchmarks.floor
	$(BIN)/python -m benchmarks.commits
	$(BIN)/python -m benchmarks.tpch.refresh --verify --state
	$(BIN)/python -m benchmarks.tpch.scaling
	$(BIN)/python -m benchmarks.wide.run
	$(BIN)/python -m benchmarks.small.run
	$(BIN)/python -m benchmarks.soak
	$(BIN)/python -m benchmarks.following --rounds 10
	$(BIN)/python -m benchmarks.subscribers --seconds 10
	$(BIN)/python -m benchmarks.recursion --edges 200000 --nodes 80000

clean: ## removes what was generated, and the environment
	rm -rf $(VENV) $(VENV)-* .jars .mysql build dist site htmlcov .coverage .coverage.* *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf example_project/*/data example_project/*/state example_project/*/.dbt_incremental_dd example_project/*/target example_project/*/logs
