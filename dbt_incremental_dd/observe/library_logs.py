"""What libraries that send something log of it: it is heard here, and stays out of dbt's output, in which dbt's own
usage statistics have turned logging on."""

from __future__ import annotations

import logging
import threading

from dbt_incremental_dd.observe.background import THREAD


class Heard(logging.Handler):
    """``last``: the last warning or error."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()


def hear(library: str) -> Heard:
    """Hears the library's loggers, from now on in place of those above them."""
    logger = logging.getLogger(library)
    found = next((one for one in logger.handlers if isinstance(one, Heard)), None)
    if found is None:
        found = Heard(logging.WARNING)
        logger.addHandler(found)
        logger.propagate = False
        logging.getLogger("urllib3.connectionpool").addFilter(_is_of_others)
    return found


def _is_of_others(record: logging.LogRecord) -> bool:
    """Whether it is about a request that is not an observer's."""
    return threading.current_thread().name != THREAD
