"""The DuckDB functions that a statement written by others may call: their results depend on their arguments, the clock
or chance only. None of them reads a file, a setting, the environment, or a table given by name.

Functions of newer DuckDB versions are refused until they are listed here.
"""

from __future__ import annotations

import re

_NUMBERS = """
abs acos acosh add asin asinh atan atan2 atanh binom bit_count cbrt ceil ceiling cos cosh cot degrees divide even exp
factorial floor gamma gcd greatest greatest_common_divisor isfinite isinf isnan lcm least least_common_multiple lgamma
ln log log10 log2 mod multiply nextafter pi pow power radians random round round_even roundbankers sign signbit sin
sinh sqrt subtract tan tanh to_base trunc xor fdiv fmod
"""
_TEXTS = """
ascii bar base64 bin bit_length bit_position bitstring char_length character_length chr concat concat_ws
damerau_levenshtein decode editdist3 encode ends_with format formatreadabledecimalsize formatreadablesize format_bytes
from_base64 from_binary from_hex gen_random_uuid get_bit hamming hash hex ilike_escape instr jaccard jaro_similarity
jaro_winkler_similarity lcase left left_grapheme len length length_grapheme levenshtein like_escape lower lpad ltrim
md5 md5_number mismatches nfc_normalize not_ilike_escape not_like_escape octet_length ord overlay parse_dirname
parse_dirpath parse_filename parse_formatted_bytes parse_path path_join position prefix printf regexp_escape
regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array repeat replace
reverse right right_grapheme rpad rtrim set_bit sha1 sha256 split starts_with str_split str_split_regex string_split
string_split_regex string_to_array strip_accents strlen strpos substr substring substring_grapheme suffix to_base64
to_binary to_hex translate trim typeof ucase unbin unhex unicode upper url_decode url_encode uuid uuid_extract_version
uuidv4 uuidv7 if md5_number_lower md5_number_upper nullif regexp_split_to_table split_part pg_typeof pg_size_pretty
"""
_TIMES = """
age century current_date current_localtime current_localtimestamp date_diff date_part date_sub date_trunc datediff
datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear decade epoch epoch_ms epoch_ns epoch_us era
get_current_time get_current_timestamp hour isodow isoyear julian last_day make_date make_time make_timestamp
make_timestamp_ms make_timestamp_ns make_timestamptz microsecond millennium millisecond minute month monthname
nanosecond normalized_interval now quarter second strftime strptime time_bucket timezone timezone_hour timezone_minute
to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters
to_seconds to_timestamp to_weeks to_years today transaction_timestamp try_strptime uuid_extract_timestamp week weekday
weekofyear year yearweek ago date_add days_in_month
"""
_NESTED = """
aggregate apply array_aggr array_aggregate array_apply array_cat array_concat array_contains array_cosine_distance
array_cosine_similarity array_cross_product array_distance array_distinct array_dot_product array_extract array_filter
array_grade_up array_has array_has_all array_has_any array_indexof array_inner_product array_intersect array_length
array_negative_dot_product array_negative_inner_product array_position array_reduce array_resize array_reverse_sort
array_select array_slice array_sort array_to_json array_transform array_unique array_value array_where array_zip
cardinality contains element_at enum_code enum_first enum_last enum_range enum_range_boundary equi_width_bins filter
flatten from_json from_json_strict generate_series grade_up invoke json_array json_array_length json_contains
json_deep_merge json_exists json_extract json_extract_path json_extract_path_text json_extract_string json_insert
json_keys json_merge_patch json_merge_patch_diff json_normalize json_object json_pretty json_quote json_remove
json_replace json_set json_strip_nulls json_structure json_transform json_transform_strict json_type json_valid
json_value list_aggr list_aggregate list_apply list_cat list_concat list_contains list_cosine_distance
list_cosine_similarity list_distance list_distinct list_dot_product list_element list_extract list_filter
list_grade_up list_has list_has_all list_has_any list_indexof list_inner_product list_intersect
list_negative_dot_product list_negative_inner_product list_pack list_position list_reduce list_resize
list_reverse_sort list_select list_slice list_sort list_transform list_unique list_value list_where list_zip map
map_concat map_contains map_entries map_extract map_extract_value map_from_entries map_keys map_values range reduce
row row_to_json struct_concat struct_contains struct_extract struct_extract_at struct_has struct_indexof struct_insert
struct_keys struct_pack struct_position struct_update struct_values to_json union_extract union_tag union_value
variant_array_length variant_contains variant_exists variant_extract variant_extract_string variant_keys variant_type
variant_typeof vertex_extract array_append array_pop_back array_pop_front array_prepend array_push_back
array_push_front array_reverse array_to_string array_to_string_comma_default generate_subscripts json json_group_array
json_group_object json_group_structure list_any_value list_append list_approx_count_distinct list_avg list_bit_and
list_bit_or list_bit_xor list_bool_and list_bool_or list_count list_entropy list_first list_histogram list_kurtosis
list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode list_prepend list_product list_reverse
list_sem list_skewness list_stddev_pop list_stddev_samp list_string_agg list_sum list_var_pop list_var_samp
map_contains_entry map_contains_value
"""
_GEOMETRY = """
st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_crs st_geomfromgeojson st_geomfromwkb st_intersects_extent
st_setcrs
"""
_AGGREGATES = """
geomean geometric_mean wavg weighted_avg any_value approx_count_distinct approx_quantile approx_top_k arbitrary
arg_max arg_max_null arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and
bit_or bit_xor bitstring_agg bool_and bool_or corr count count_if countif covar_pop covar_samp entropy favg first fsum
group_concat histogram histogram_exact kahan_sum kurtosis kurtosis_pop last list listagg lttb mad max max_by mean
median min min_by mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept
regr_r2 regr_slope regr_sxx regr_sxy regr_syy reservoir_quantile sem skewness stddev stddev_pop stddev_samp string_agg
sum sumkahan var_pop var_samp variance
"""
_WINDOWS = """
cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank rank_dense row_number
"""
_OPERATORS = """
!= !__postfix !~~ !~~* % & && * ** + - ->> / // < <-> << <= <=> <@ = > >= >> @ @> ^ ^@ | || ~ ~~ ~~* ~~~
"""
_REFUSED = """
alias assert_true bitstring_byte_comparable can_cast_implicitly cast_to_type col_description combine combine_aggr
constant_or_null create_sort_key current_catalog current_connection_id current_database current_query current_query_id
current_role current_schema current_schemas current_setting current_transaction_id current_user currval
decimal_average decimal_division error finalize format_pg_type format_type get_block_size get_type getvariable
hive_partition_component icu_sort_key in_search_path index_key inet_client_addr inet_client_port inet_server_addr
inet_server_port is_histogram_other_bin json_copy_strftime_if_date json_copy_strftime_if_timestamp
json_deserialize_sql json_serialize_plan json_serialize_sql make_type map_to_pg_oid map_type_id_to_pg_oid nextval
obj_description parse_duckdb_log_message remap_struct replace_type session_user setseed setval shobj_description
sleep_ms stats sum_no_overflow switch timetz_byte_comparable to_aggregate_state txid_current unpivot_list user
variant_bytes_to_variant variant_comparator variant_group_array variant_group_object variant_normalize
variant_to_parquet_variant vector_type version write_log
"""
ALLOWED = frozenset(
    " ".join(
        [_NUMBERS, _TEXTS, _TIMES, _NESTED, _GEOMETRY, _AGGREGATES, _WINDOWS, _OPERATORS, "unnest count_star"]
    ).split()
)
"""Allowed in expressions; in lower case."""
TABLES = frozenset(
    [
        "generate_series",
        "icu_calendar_names",
        "json_each",
        "json_tree",
        "pg_timezone_names",
        "range",
        "repeat",
        "unnest",
    ]
)
"""Allowed in FROM."""

_REFUSED_FAMILIES = re.compile(
    r"__\w+|(icu_)?collate_\w+|(duckdb|pragma|pg|read|parquet|enable|disable|has|python|test|truncate)_\w+"
    r"|\w+_external_resource(_\w+)?|\w+_scan(_\w+)?"
)
"""The optimizer's functions, and those that read files, settings or the catalog, or write anything."""
_REFUSED_TABLES = frozenset(
    {
        "add_grammar_extension",
        "remove_grammar_extension",
        "checkpoint",
        "force_checkpoint",
        "glob",
        "histogram",
        "histogram_values",
        "json_execute_serialized_sql",
        "query",
    }
    | {"query_table", "repeat_row", "sniff_csv", "summary", "which_secret", "regexp_split_to_table"}
)


def is_refused(name: str) -> bool:
    """Whether the function is known and refused."""
    return name in _REFUSED_WORDS or name in _REFUSED_TABLES or bool(_REFUSED_FAMILIES.fullmatch(name))


_REFUSED_WORDS = frozenset(_REFUSED.split())
