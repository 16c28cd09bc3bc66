# syntax=docker/dockerfile:1
# The driver: dbt with the adapter, its commands and servers, Java, and Spark's way to object storage.
#   docker build --tag dbt-incremental-dd .
#   docker build --tag dbt-incremental-dd-airflow --target airflow .

FROM python:3.11-slim-bookworm AS wheel
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM apache/airflow:3.1.3-python3.11 AS airflow
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl

FROM python:3.11-slim-bookworm AS driver
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless=17.* procps=2:4.* tini=0.19.* \
    && rm -rf /var/lib/apt/lists/*
ARG EXTRAS=aws,kafka,lake,mysql,openlineage,opentelemetry,postgres
ARG PYSPARK=4.3.*
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir "uv==0.9.*" \
    && uv pip install --system --no-cache "$(echo /wheels/*.whl)[${EXTRAS}]" "pyspark[connect]==${PYSPARK}"
# Packages for object storage, of the version of Spark's Hadoop client, lie beside Spark's own: no session fetches them.
ARG STORES=hadoop-aws,hadoop-azure
RUN python <<'EOT'
import os, re, shutil
from pathlib import Path
import pyspark
from pyspark.sql import SparkSession

jars = Path(pyspark.__file__).parent / "jars"
(client,) = jars.glob("hadoop-client-api-*.jar")
version = re.sub(r"hadoop-client-api-|\.jar", "", client.name)
packages = ",".join(f"org.apache.hadoop:{name}:{version}" for name in os.environ["STORES"].split(","))
settings = {"spark.jars.packages": packages, "spark.jars.ivy": "/tmp/ivy", "spark.ui.enabled": "false"}
SparkSession.builder.master("local[1]").config(map=settings).getOrCreate().stop()
for jar in Path("/tmp/ivy/jars").glob("*.jar"):
    shutil.copy(jar, jars)
shutil.rmtree("/tmp/ivy")
EOT

RUN useradd --create-home --uid 1000 dbt \
    && mkdir /project /cache \
    && chown dbt /project /cache
USER 1000
WORKDIR /project
# Copies of data files in object storage: a volume spares a new container fetching them.
ENV DBT_DD_CACHE=/cache DBT_PROFILES_DIR=/project PYTHONUNBUFFERED=1
ENTRYPOINT ["tini", "--"]
CMD ["dbt", "run"]
