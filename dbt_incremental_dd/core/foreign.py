"""Errors of libraries and the operating system, summarized in a line."""

from __future__ import annotations

import re
import sys

_FILE = re.compile(r"(?:reading|read) (?:the )?(?:Parquet )?file:? '?(?:file:)?/*(/[^\s'\"]+?)'?[.,]?(?:\s|$)")
_CALL = "An error occurred while calling "
_LONGEST = 300
_ENDED = ("Answer from Java side is empty", "Error while sending or receiving", "obtaining a new communication channel")
"""What Py4J's errors contain if the JVM is gone."""


def is_foreign(error: BaseException) -> bool:
    """Whether an error comes from the operating system or a library, and is not a bug in this package."""
    package = type(error).__module__.split(".")[0]
    return isinstance(error, OSError) or package not in (__name__.split(".")[0], *sys.stdlib_module_names)


def reason(error: BaseException) -> str:
    """The error's message without a stack: that of the innermost cause if there are several."""
    if isinstance(error, ConnectionRefusedError | ConnectionResetError) or any(text in str(error) for text in _ENDED):
        return (
            "Spark's JVM has ended, perhaps for want of memory: see spark.log, and spark.driver.memory in the profile"
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith("Caused by:")]
    first = next((line for line in lines if not line.startswith(("at ", "...", _CALL))), type(error).__name__)
    text = causes[-1] if causes else first.removeprefix(": ")
    return re.sub(r"^(?:[a-z]\w*\.)+(?=[A-Z])", "", text)[:_LONGEST]


def file_of(error: BaseException) -> str | None:
    """The path of the file that could not be read, if the error names one."""
    found = _FILE.search(str(error))
    return found[1] if found else None
