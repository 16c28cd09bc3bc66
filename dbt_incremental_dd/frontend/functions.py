"""Spark's functions that are more than scalar, by name."""

from __future__ import annotations

AGGREGATES = frozenset(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg
    bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every
    first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kll_sketch_agg_bigint
    kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value listagg max max_by mean measure median
    min min_by mode percentile percentile_approx percentile_cont percentile_disc product regr_avgx regr_avgy
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some
    std stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg
    try_avg try_sum var_pop var_samp variance vector_avg vector_sum
    """.split()  # noqa: SIM905 - a table to read
)

GENERATORS = frozenset(
    """
    collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer sql_keywords
    stack variant_explode variant_explode_outer
    """.split()  # noqa: SIM905 - a table to read
)

NONDETERMINISTIC = frozenset(
    """
    current_catalog current_database current_schema current_user input_file_block_length input_file_block_start
    input_file_name monotonically_increasing_id rand randn random randstr session_user shuffle spark_partition_id
    uniform user uuid version
    """.split()  # noqa: SIM905 - a table to read
)
