"""A small query over a table of the catalog: `make` archives the classes that Spark loads for it."""

from __future__ import annotations

from tempfile import TemporaryDirectory

from dbt_incremental_dd.runtime.session import open_session

if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        spark = open_session(folder, {})
        spark.sql("CREATE TABLE t USING parquet AS SELECT id, id % 3 AS k, CAST(id AS STRING) AS s FROM range(99)")
        spark.sql("CREATE VIEW v AS SELECT k, count(*) AS n, max(s) AS s FROM t GROUP BY k")
        print(spark.sql("SELECT * FROM t JOIN v USING (k) WHERE n > 2 ORDER BY id").toArrow().num_rows)
        spark.stop()
