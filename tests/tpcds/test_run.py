"""How ``make tpcds`` writes queries as models, and changes rows."""

from __future__ import annotations

import random
from collections import Counter

from tests.tpcds.run import Changes, as_model


def test_tables_are_models_inputs_and_ctes_are_not() -> None:
    sql = "WITH web AS (SELECT k FROM sales) SELECT web.k, sales.k FROM web, sales, (SELECT k FROM returns) store;"
    assert as_model(sql, {"sales", "returns", "web", "store"}) == (
        "WITH web AS (SELECT k FROM {sales} AS sales) SELECT web.k, sales.k AS column_1 "
        "FROM web, {sales} AS sales, (SELECT k FROM {returns} AS returns) AS store"
    )


def test_changes_take_rows_that_are_there_and_give_others() -> None:
    rows = [(n, n % 3) for n in range(100)]
    changes = Changes(rows, random.Random(1))
    held = list(changes.first)
    assert len(held) == 90
    for _ in range(20):
        new, gone = changes.next(held, 0.1)
        assert not Counter(gone) - Counter(held)
        assert len(gone) == 6 and 3 <= len(new) <= 6
        held = list((Counter(held) - Counter(gone) + Counter(new)).elements())
