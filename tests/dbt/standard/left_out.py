"""Classes of the suite that are not run, each with its reason. A module's name stands for all that it has."""

from __future__ import annotations

_MERGE = "needs MERGE: Delta, Iceberg or Hudi tables, whose connectors are not there for the pyspark that is tested"
_UPDATES = "updates tables, which are Parquet's here; tests/lake/test_snapshots.py compares with dbt-spark's snapshots"
_POSTGRES = "its SQL, or what it expects, is PostgreSQL's"
_GRANTS = "Spark's own catalog has no users, roles or grants; test_standard_configs.py has the refusal"
_UDFS = "dbt-spark makes no functions from dbt's resources of that kind"
_VIEWS = "Spark has no materialized views"
_PYTHON = "dbt-spark submits Python models to Databricks clusters"
_SCHEMAS = "dbt-spark has schemas alone, no databases"
_COMMENTS = (
    "dbt-spark's catalog has no comments, in which it looks for them; test_standard_configs.py looks at the view"
)
_DDL = "expects constraints in DDL; dbt-spark alters Delta tables, and differential models have none in theirs"

LEFT_OUT: dict[str, str] = {
    "aliases.test_aliases:BaseSameAliasDifferentDatabases": _SCHEMAS,
    "basic.test_docs_generate": "expects the catalog of its own project type by type; test_project.py generates docs",
    "basic.test_get_catalog_for_single_relation": "dbt-spark has no such capability",
    "caching.test_caching:BaseCachingTest": "its subclasses are run",
    "catalog.relation_types": _VIEWS,
    "column_types.test_column_types": _POSTGRES,
    "constraints.test_constraints:BaseConstraintsColumnsEqual": "its subclasses are run",
    "constraints.test_constraints:BaseConstraintsRuntimeDdlEnforcement": _DDL,
    "constraints.test_constraints:BaseConstraintQuotedColumn": _DDL,
    "constraints.test_constraints:BaseIncrementalConstraintsRuntimeDdlEnforcement": _DDL,
    "constraints.test_constraints:BaseModelConstraintsRuntimeEnforcement": _DDL,
    "constraints.test_constraints:BaseIncrementalConstraintsColumnsEqual": _MERGE,
    "constraints.test_constraints:BaseIncrementalConstraintsRollback": _MERGE,
    "constraints.test_constraints:BaseIncrementalForeignKeyConstraint": _MERGE,
    "constraints.test_constraints:BaseContractSqlHeader": _POSTGRES,
    "constraints.test_constraints:BaseTableContractSqlHeader": _POSTGRES,
    "constraints.test_constraints:BaseIncrementalContractSqlHeader": _POSTGRES,
    "dbt_clone.test_dbt_clone:BaseClonePossible": f"{_MERGE}; test_standard_configs.py clones differential models",
    "dbt_clone.test_dbt_clone:BaseCloneNotPossible": "dbt-spark clones Delta tables, and refuses others",
    "dbt_clone.test_dbt_clone:BaseCloneSameSourceAndTarget": _SCHEMAS,
    "dbt_debug.test_dbt_debug:BaseDebugPostgres": _POSTGRES,
    "empty.test_empty:MetadataWithEmptyFlag": "alters columns and comments of Parquet tables, which Spark cannot",
    "functions.test_js_udfs": _UDFS,
    "functions.test_udafs": _UDFS,
    "functions.test_udfs": _UDFS,
    "grants.test_incremental_grants": _GRANTS,
    "grants.test_invalid_grants": _GRANTS,
    "grants.test_model_grants": _GRANTS,
    "grants.test_seed_grants": _GRANTS,
    "grants.test_snapshot_grants": _GRANTS,
    "hooks.test_model_hooks:BaseHookRefs": _POSTGRES,
    "hooks.test_model_hooks:BaseHooksRefsOnSeeds": _POSTGRES,
    "hooks.test_model_hooks:BasePrePostModelHooks": f"{_POSTGRES}; test_standard_configs.py has hooks",
    "hooks.test_model_hooks:BasePrePostModelHooksInConfig": _POSTGRES,
    "hooks.test_model_hooks:BasePrePostModelHooksInConfigKwargs": _POSTGRES,
    "hooks.test_model_hooks:BasePrePostModelHooksInConfigWithCount": _POSTGRES,
    "hooks.test_model_hooks:BasePrePostModelHooksOnSeeds": _POSTGRES,
    "hooks.test_model_hooks:BasePrePostModelHooksOnSeedsPlusPrefixed": _POSTGRES,
    "hooks.test_model_hooks:BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace": _POSTGRES,
    "hooks.test_model_hooks:BasePrePostModelHooksOnSnapshots": _POSTGRES,
    "hooks.test_model_hooks:BasePrePostSnapshotHooksInConfigKwargs": _POSTGRES,
    "hooks.test_run_hooks:BasePrePostRunHooks": _POSTGRES,
    "incremental.test_incremental_merge_exclude_columns": _MERGE,
    "incremental.test_incremental_microbatch": "overwrites partitions of a table that the model has to name",
    "incremental.test_incremental_on_schema_change": f"dbt-spark adds and drops columns of such tables only: {_MERGE}",
    "incremental.test_incremental_predicates": _MERGE,
    "incremental.test_incremental_unique_id": _MERGE,
    "materialized_view.basic": _VIEWS,
    "materialized_view.changes": _VIEWS,
    "persist_docs.test_persist_docs": _COMMENTS,
    "python_model.test_python_model": _PYTHON,
    "python_model.test_spark": _PYTHON,
    "simple_copy.test_copy_uppercase": _POSTGRES,
    "simple_copy.test_simple_copy": f"{_VIEWS}, and no information_schema",
    "simple_seed.test_seed:BaseSeedWithWrongDelimiter": _POSTGRES,
    "simple_seed.test_seed:BaseSimpleSeedWithBOM": "its file is no part of the package",
    "simple_seed.test_seed_type_override": _POSTGRES,
    "simple_snapshot.new_record_check_mode": _UPDATES,
    "simple_snapshot.new_record_dbt_valid_to_current": _UPDATES,
    "simple_snapshot.new_record_timestamp_mode": _UPDATES,
    "simple_snapshot.test_ephemeral_snapshot_hard_deletes": _UPDATES,
    "simple_snapshot.test_snapshot": _UPDATES,
    "simple_snapshot.test_various_configs": _UPDATES,
    "utils.base_array_utils": "its subclasses are run",
    "utils.base_utils": "its subclasses are run",
    "utils.data_types.base_data_type_macro": "its subclasses are run",
    "utils.test_current_timestamp:BaseCurrentTimestamp": "its subclass is run",
    "utils.test_current_timestamp:BaseCurrentTimestampAware": "the other of two: Spark's come without a zone",
    "utils.test_escape_single_quotes:BaseEscapeSingleQuotesQuote": "the other of two: Spark escapes by a backslash",
}
