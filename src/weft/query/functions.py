"""Which of Spark's functions aggregate, and which of those Weft can share.

The sets are frozen from Spark 4.3 (``tests/query/test_query_functions.py`` compares them with the Spark that is
installed, so an upgrade says what is new).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft.algebra.aggregate import Aggregate
from weft.algebra.registry import AGGREGATES


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


class _InSql(Mapping[str, Aggregate]):
    """The aggregates of the registry that SQL knows, whenever they came there."""

    def __getitem__(self, name: str) -> Aggregate:
        found = AGGREGATES[name]
        if not found.in_sql:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name, aggregate in AGGREGATES.items() if aggregate.in_sql)

    def __len__(self) -> int:
        return sum(1 for _ in self)


SUPPORTED: Mapping[str, Aggregate] = _InSql()

# FunctionRegistry.expressions of Spark 4.3 whose group is agg_funcs, and those in other groups
AGGREGATES_OF_SPARK = words(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg
    bool_and bool_or collect_list collect_set collect_union corr count count_if count_min_sketch covar_pop
    covar_samp every first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg
    kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double
    kll_sketch_agg_float kurtosis last last_value listagg max max_by mean measure median min min_by mode
    percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp string_agg sum
    theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum tuple_intersection_agg_double
    tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double
    tuple_union_agg_integer var_pop var_samp variance
    schema_of_variant_agg vector_avg vector_sum
    """
)


def is_unsupported_aggregate(name: str) -> bool:
    """Whether Spark aggregates by that name and Weft, as far as it is registered here, does not.

    Examples
    --------
    >>> is_unsupported_aggregate("median"), is_unsupported_aggregate("sum"), is_unsupported_aggregate("upper")
    (True, False, False)
    """
    return name in AGGREGATES_OF_SPARK and name not in SUPPORTED


# those whose group is window_funcs
WINDOW_FUNCTIONS = words(
    """
    counter_diff cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
    """
)

# those whose group is generator_funcs, and the generators among the table functions
GENERATORS = words(
    """
    explode explode_outer inline inline_outer posexplode posexplode_outer stack json_tuple variant_explode
    variant_explode_outer
    """
)

# those that extend Nondeterministic, or are replaced when a query starts (CurrentTimestampLike)
NONDETERMINISTIC = words(
    """
    rand randn random randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id input_file_name
    input_file_block_start input_file_block_length current_timestamp current_date current_time now curdate
    localtime localtimestamp aes_encrypt java_method reflect try_reflect
    """
)

# They call whatever Java has.
REFLECTION = frozenset({"java_method", "reflect", "try_reflect"})

# Their value without an argument is the time of the run; with one they are plain functions.
NONDETERMINISTIC_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp", "to_unix_timestamp"})

# What typed literals may hold instead of a date: DATE 'today'.
MOVING_MOMENTS = frozenset({"now", "today", "tomorrow", "yesterday"})

# Names that Spark reads as functions where no column has them.
VOLATILE_NAMES = frozenset({"current_date", "current_timestamp", "current_time"})

TIME_WINDOWS = frozenset({"window", "session_window", "window_time"})
