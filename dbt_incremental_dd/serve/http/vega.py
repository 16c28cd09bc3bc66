"""Vega, Vega-Lite and Vega-Embed for pages, as one script that is served locally."""

from __future__ import annotations

from functools import cache

from dbt_incremental_dd.core.errors import ConfigError

_SNIPPET = "Object.assign(window, {vegaEmbed});"


@cache
def script() -> str:
    """The script, which defines ``vegaEmbed``. Raises ConfigError if Vega is not installed."""
    try:
        import vl_convert
    except ImportError as error:
        raise ConfigError(
            "charts need Vega, which is not installed here", "Install it: pip install 'dbt-incremental-dd[live]'"
        ) from error
    return str(vl_convert.javascript_bundle(_SNIPPET))
