"""A link from a task to its collection on the collections page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class CollectionsLink(BaseOperatorLink):
    """Links to the task's source, collection or first outlet; otherwise to all collections."""

    name = "Collections"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The page's URL."""
        given = [getattr(operator, name, None) for name in ("source", "collection")]
        shown = next(filter(None, [*given, *(asset.name for asset in operator.outlets or ())]), "")
        return f"{conf.get('api', 'base_url', fallback='').rstrip('/')}/differential/#{quote(str(shown))}"
