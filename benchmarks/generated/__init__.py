"""Generated analytic queries over TPC-H's tables, as models over tables that change."""
