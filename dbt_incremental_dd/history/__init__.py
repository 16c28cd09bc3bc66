"""The history of a query's rows: a row for each interval in which one was valid, closed where it went or changed."""
