"""Calls of dates and times that the driver evaluates."""

from __future__ import annotations

_UNITS = ("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK")
_CLOCK_UNITS = ("DAY", "DD", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_FIELDS = (
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "DOW",
    "DAYOFWEEK",
    "DAYOFWEEK_ISO",
    "DOW_ISO",
    "DOY",
    "YEAROFWEEK",
)
_DIFFERENCES = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")

DATES = [
    *(f"{part}(d)" for part in ("year", "quarter", "month", "day", "dayofmonth", "dayofyear", "dayofweek", "weekday")),
    *(
        "weekofyear(d)",
        "unix_date(d)",
        "date_from_unix_date(i)",
        "last_day(d)",
        "d + 1",
        "1 + d",
        "d - 3",
        "d + i",
        "d - s",
    ),
    *(
        "d + b",
        "date_add(d, i)",
        "date_add(d, 5)",
        "date_sub(d, j)",
        "date_sub(d, 30)",
        "dateadd(d, 1)",
        "datediff(d, e)",
    ),
    *("date_diff(d, e)", "datediff(d, DATE '2024-01-01')", "datediff(DATE '2024-01-01', d)", "add_months(d, s)"),
    *("add_months(d, 1)", "add_months(d, -12)", "add_months(DATE '2024-01-31', s)", "next_day(d, 'MON')"),
    *(
        "next_day(d, 'Sunday')",
        "next_day(d, 'th')",
        "make_date(i, j, 29)",
        "make_date(2024, j, i)",
        "make_date(i, 2, 29)",
    ),
    *(f"trunc(d, '{unit}')" for unit in _UNITS),
    *("trunc(d, 'mm')", "trunc(v, 'month')"),
    *(f"EXTRACT({field} FROM d)" for field in _FIELDS),
    *(
        "date_part('year', d)",
        "date_part('doy', d)",
        "d + INTERVAL 1 DAY",
        "d - INTERVAL '90' DAY",
        "d + INTERVAL 3 MONTHS",
    ),
    *("d - INTERVAL '1' YEAR", "d + INTERVAL 2 WEEKS", "d + INTERVAL -5 DAYS", "to_date(d)", "date(v)", "to_date(p)"),
    *("CAST(d AS STRING)", "CAST(v AS DATE)", "d = '2024-02-29'", "d >= '2024-01-01'", "d BETWEEN '1970-01-01' AND e"),
    *(
        "d < v",
        "date_add(v, 1)",
        "year(v)",
        "month(v)",
        "day(v)",
        "d = e",
        "datediff(v, w)",
        "d IN (e, DATE '1970-01-01')",
    ),
]
MOMENTS = [
    *(
        "from_utc_timestamp(v, 'America/New_York')",
        "from_utc_timestamp(v, '+05:30')",
        "to_utc_timestamp(v, 'Europe/Paris')",
    ),
    *("to_utc_timestamp(v, 'UTC')", "from_utc_timestamp(v, 'Asia/Tokyo')"),
    *(
        "v >= '2024-01-01'",
        "v BETWEEN '2024-01-01' AND '2024-12-31 12:00:00'",
        "v < DATE '2024-01-01'",
        "to_timestamp(p)",
    ),
    *(f"date_trunc('{unit}', v)" for unit in (*_UNITS, *_CLOCK_UNITS)),
    *("date_trunc('month', d)", "date_trunc('week', d)", "date_trunc('DAY', d)", "date_trunc('quarter', v)"),
    *("hour(v)", "minute(v)", "second(v)", "EXTRACT(HOUR FROM v)", "EXTRACT(MINUTE FROM v)", "EXTRACT(YEAR FROM v)"),
    *("EXTRACT(WEEK FROM v)", "EXTRACT(DOY FROM v)", "date_part('hour', v)", "unix_seconds(v)", "unix_millis(v)"),
    *("unix_micros(v)", "timestamp_seconds(k)", "timestamp_millis(k)", "timestamp_micros(k)", "timestamp_seconds(i)"),
    *(
        "unix_timestamp(v)",
        "to_unix_timestamp(v)",
        "unix_timestamp(d)",
        "from_unixtime(k)",
        "from_unixtime(k, 'yyyy-MM-dd')",
    ),
    *("date_format(v, 'yyyy-MM-dd')", "date_format(v, 'HH:mm')", "date_format(v, 'yyyy-MM-dd HH:mm:ss')"),
    *(
        "date_format(v, 'yyyyMM')",
        "date_format(v, 'E, dd MMM yyyy')",
        "date_format(d, 'EEEE dd MMMM')",
        "date_format(d, 'LLL LLLL EE EEE')",
        "date_format(v, 'dd/MM/yyyy')",
        "date_format(d, 'yyyy-MM')",
        "date_format(d, 'yyyyMMdd')",
    ),
    *("CAST(v AS STRING)", "CAST(d AS TIMESTAMP)", "to_timestamp(d)", "to_timestamp(v)", "CAST(v AS BIGINT)"),
    *(
        "CAST(k AS TIMESTAMP)",
        "v + INTERVAL 10 SECONDS",
        "v - INTERVAL 1 HOUR",
        "v + INTERVAL 1 DAY",
        "v - INTERVAL 30 DAYS",
    ),
    *(
        "v + INTERVAL 25 HOURS",
        "v + INTERVAL 1 MONTH",
        "v - INTERVAL '1' YEAR",
        "v + INTERVAL 1 WEEK",
        "v = w",
        "v < w",
    ),
    *(f"timestampdiff({unit}, v, w)" for unit in _DIFFERENCES),
    *(f"datediff({unit}, d, e)" for unit in ("DAY", "MONTH", "WEEK")),
    *("dateadd(DAY, 1, v)", "timestampadd(HOUR, -25, v)", "dateadd(MONTH, 1, v)", "date_add(DAY, 1, d)"),
    *("timestampadd(QUARTER, 1, v)", "v >= '2024-01-01 00:00:00'", "unix_seconds(v) DIV 10 * 10"),
    *("timestamp_seconds(unix_seconds(v) DIV 10 * 10)", "v BETWEEN w AND w"),
    *(
        "to_timestamp(p, 'yyyy-MM-dd HH:mm:ss')",
        "to_timestamp_ntz(p)",
        "to_timestamp_ltz(v)",
    ),
    *(
        f"{function}(date_format(v, {pattern!r}), {pattern!r})"
        for function in ("to_date", "to_timestamp", "to_timestamp_ntz", "to_timestamp_ltz")
        for pattern in ("yyyyMMdd", "yyyyMMdd-HHmmss", "dd/MM/yyyy HH:mm", "yyyy-MM", "yyyy", "yyyy.MM.dd")
    ),
    *("months_between(v, w)", "months_between(d, e)", "months_between(v, d)", "months_between(d, DATE '2024-01-31')"),
    *("months_between(v, w, false)", "months_between(date_trunc('month', v), w, true)"),
    """date_format(v, "yyyy-MM-dd'T'HH:mm")""",
    """to_timestamp(concat(date_format(v, "yyyy-MM-dd'T'HH:mm:ss"), '.125'), "yyyy-MM-dd'T'HH:mm:ss.SSS")""",
    """to_timestamp_ntz(date_format(v, 'HHmmss yyyyMMdd'), 'HHmmss yyyyMMdd')""",
]
