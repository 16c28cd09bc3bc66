"""What a model's config says of adoption: its first contents are the rows of a table that is there already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dbt_incremental_dd.core.errors import ConfigError

Verify = Literal["sample", "whole", "none"]
_SETTINGS = ("from", "verify")
_VERIFY: Mapping[Any, Verify] = {"sample": "sample", "whole": "whole", "none": "none"}


@dataclass(frozen=True)
class Adopt:
    """``table``: a relation as SQL names it; empty for the table that has the model's own name. ``verify``: by how many
    rows of the query's answer its rows are checked."""

    table: str = ""
    verify: Verify = "sample"


def parse_adopt(model: str, asked: Any) -> Adopt | None:
    """The config ``adopt``: true, a relation, or ``{from: relation, verify: sample|whole|none}``; None if it is not
    set. Raises ConfigError for anything else."""
    if asked in (None, False):
        return None
    given = {} if asked is True else {"from": asked} if isinstance(asked, str) else asked
    if not isinstance(given, Mapping) or not set(given) <= set(_SETTINGS):
        raise ConfigError(
            f"model {model}: adopt is {asked!r}", f"It may be true, a relation, or settings: {', '.join(_SETTINGS)}."
        )
    table, verify = given.get("from") or "", given.get("verify") or "sample"
    if verify not in _VERIFY:
        raise ConfigError(f"model {model}: adopt.verify is {verify!r}", f"It may be {', '.join(_VERIFY)}.")
    if not isinstance(table, str):
        raise ConfigError(f"model {model}: adopt.from is {table!r}", "Name a relation: schema.table.")
    return Adopt(table, _VERIFY[verify])
