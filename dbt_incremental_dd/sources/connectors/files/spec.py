"""Settings of sources that are files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.paths import require_format, require_path
from dbt_incremental_dd.sources.setting import duration_if_any, path, setting, text
from dbt_incremental_dd.sources.spec import FILE_FORMATS, SourceSpec, one_of

_SUFFIXES = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}


@dataclass(frozen=True, kw_only=True)
class FilesSpec(SourceSpec):
    """``path``: a folder or a file, absolute or a URI."""

    connector: ClassVar[str] = "files"
    reads: ClassVar[str] = "files"
    record_settings: ClassVar[tuple[str, ...]] = ("columns", "format", "options")
    is_replayed: ClassVar[bool] = True

    path: str | None = setting(path)
    format: str | None = setting(one_of(*FILE_FORMATS))
    event_time: str | None = setting(text)
    keep: int | None = setting(duration_if_any)

    @property
    def reads_local_times(self) -> bool:
        return self.format != "parquet" and (not self.columns or any("timestamp" in t.lower() for _, t in self.columns))

    @property
    def location(self) -> str | None:
        return self.path

    @classmethod
    def completed(cls, source: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The format follows from the path's ending. Raises ConfigError if it does not."""
        if given.get("path") is None or given.get("format") is not None:
            return given
        form = _SUFFIXES.get(os.path.splitext(str(given["path"]))[1].lower())
        if form is None:
            raise ConfigError(
                f"source {source}: differential.path needs a format", f"Set format to {', '.join(FILE_FORMATS)}."
            )
        return {**given, "format": form}

    def check(self) -> None:
        require_path(self)
        require_format(self)
        if self.untyped and self.columns:
            raise ConfigError(
                f"source {self.name}: column {self.untyped[0]} has no data_type, while others have one",
                "Give all columns a data_type. Where none has one, the types are those found in the files.",
            )
        if self.event_time is not None and self.envelope.is_whole:
            raise ConfigError(
                f"source {self.name}: event_time is for files of events",
                "Set an envelope other than snapshot, or leave event_time out.",
            )
