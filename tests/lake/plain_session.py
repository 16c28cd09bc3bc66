"""A Spark session with Delta's connector and a metastore of its own, which knows nothing of this project: FOLDER JARS.

Each line of its input is a statement in SQL; it answers with a line: the file of Arrow that has the rows, or the error.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession


def main(folder: Path, jars: str) -> None:
    """Answers until its input ends."""
    settings = {
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder}/metastore;create=true",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[1]").enableHiveSupport()
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for number, statement in enumerate(sys.stdin):
        try:
            table = spark.sql(statement).toArrow()
        except Exception as error:
            print(f"error {' '.join(str(error).split())}", flush=True)
            continue
        file = folder / f"{number}.arrow"
        with pa.OSFile(str(file), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        print(f"rows {file}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
