"""A small query of a session whose state and rows are in S3: the JVM archives the classes that it loads for it."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from dbt_incremental_dd.runtime.session import open_session
from tests.servers import s3
from tests.servers.cluster import on_class_path

if __name__ == "__main__":
    with TemporaryDirectory() as folder, s3.serving(Path(folder) / "s3") as store:
        os.chdir(folder)
        spark = open_session(f"{store.root}/state", on_class_path(), store.options)
        rows = store.root.replace("s3:", "s3a:") + "/rows"
        spark.sql("SELECT id, id % 3 AS k, CAST(id AS STRING) AS s FROM range(99)").write.parquet(rows)
        spark.read.parquet(rows).createOrReplaceTempView("t")
        spark.sql("CREATE TABLE n USING parquet AS SELECT k, count(*) AS n, max(s) AS s FROM t GROUP BY k")
        print(spark.sql("SELECT * FROM t JOIN n USING (k) WHERE n > 2 ORDER BY id").toArrow().num_rows)
        spark.stop()
