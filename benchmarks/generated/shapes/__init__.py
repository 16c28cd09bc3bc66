"""The shapes that queries have: each a function from random choices to a query."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.generated.draw import Draw
from benchmarks.generated.shapes.analyst import bands, calendar, latest, profile
from benchmarks.generated.shapes.entities import below_average, leaders, memberships, scorecard, segments
from benchmarks.generated.shapes.layered import layered
from benchmarks.generated.shapes.periods import channel_growth, channels, cohorts, full_periods, trend, year_over_year
from benchmarks.generated.shapes.reports import pivot, rollup, shares, subqueries, top_filter
from benchmarks.generated.shapes.wide import baskets, distribution, resale, stock_turn

SHAPES: tuple[Callable[[Draw], str], ...] = (
    rollup,
    year_over_year,
    memberships,
    resale,
    layered,
    shares,
    profile,
    channel_growth,
    segments,
    subqueries,
    trend,
    calendar,
    below_average,
    scorecard,
    pivot,
    channels,
    leaders,
    bands,
    stock_turn,
    top_filter,
    cohorts,
    distribution,
    full_periods,
    baskets,
    latest,
)
