"""The methods to reach Spark that a profile may name."""

from __future__ import annotations

from dbt_incremental_dd.core.errors import ConfigError


def require_method(method: object) -> None:
    """Raises ConfigError for a dbt-spark ``method`` that only sends statements to a server."""
    if method in (None, "session"):
        return
    raise ConfigError(
        f"method {method}: a differential model is run by a Spark session, and not by statements that are sent to a "
        "server",
        "Leave `method` out, or write `method: session`. Spark on a cluster: spark.master among "
        "server_side_parameters. A server: start Spark Connect on it, and name it by SPARK_REMOTE=sc://host:15002 or "
        "spark.remote among server_side_parameters. docs/adopting.md has each.",
    )
