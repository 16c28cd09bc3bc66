"""What the user's own Spark files and variables set. Spark reads them by itself; ours must not come before them.

They are found where Spark documents them: ``spark-defaults.conf`` in SPARK_CONF_DIR, or else in ``conf`` of
SPARK_HOME; options of spark-submit in PYSPARK_SUBMIT_ARGS; ``hive-site.xml`` in the same folder, or in
HADOOP_CONF_DIR or YARN_CONF_DIR.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

from dbt_incremental_dd.core.errors import ConfigError

_OPTIONS = {
    "--master": "spark.master",
    "--name": "spark.app.name",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
}
"""Options of spark-submit for settings that we have defaults for."""
_VARIABLES = {"SPARK_DRIVER_MEMORY": "spark.driver.memory", "MASTER": "spark.master"}
_LOGGING = ("properties", "xml", "yaml", "yml", "json")
_COMMENT = ("#", "!")
_ENTRY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True)
class UserSpark:
    """``settings``: Spark's; ``hive_site``: names of what hive-site.xml sets, None if there is none; ``has_logging``:
    whether there is a configuration of log4j."""

    settings: Mapping[str, str] = field(default_factory=dict)
    hive_site: frozenset[str] | None = None
    has_logging: bool = False


def user_spark(environment: Mapping[str, str]) -> UserSpark:
    """What is set for a session of this process. Raises ConfigError, naming the file, if it cannot be read."""
    folder = conf_folder(environment)
    named, given = _submitted(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    variables = {key: environment[name] for name, key in _VARIABLES.items() if environment.get(name)}
    file = Path(named) if named else folder / "spark-defaults.conf"
    written = properties(_text(file)) if named or file.exists() else {}
    settings = {name: value for name, value in written.items() if name.startswith("spark.")}
    return UserSpark(
        {**variables, **settings, **given},
        _hive_site([folder, *(Path(environment[n]) for n in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if n in environment)]),
        any((folder / f"log4j2.{form}").exists() for form in _LOGGING),
    )


def properties(text: str) -> dict[str, str]:
    """The entries of a Java properties file, the format of ``spark-defaults.conf``."""
    found = {}
    for line in _lines(text):
        entry = _ENTRY.fullmatch(line)
        if entry is not None:
            found[_plain(entry[1])] = _plain(entry[2]).strip()
    return found


def _lines(text: str) -> Iterator[str]:
    """Lines without comments; one that ends in a backslash goes on in the next one."""
    pending = ""
    for line in text.splitlines():
        line = pending + line.lstrip()
        pending = ""
        if not line or line.startswith(_COMMENT):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
        else:
            yield line
    if pending:
        yield pending


def _plain(escaped: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _CONTROL.get(m[2], m[2]), escaped)


def spark_home(environment: Mapping[str, str]) -> Path:
    """The folder of the Spark that pyspark starts: the user's own, or the one that comes with pyspark."""
    home = environment.get("SPARK_HOME")
    if home:
        return Path(home)
    found = find_spec("pyspark")
    assert found is not None and found.submodule_search_locations
    return Path(found.submodule_search_locations[0])


def conf_folder(environment: Mapping[str, str]) -> Path:
    """Where Spark's own files of settings are, if there are any."""
    given = environment.get("SPARK_CONF_DIR")
    return Path(given) if given else spark_home(environment) / "conf"


def _submitted(arguments: str) -> tuple[str | None, dict[str, str]]:
    """The properties file and the settings that options of spark-submit name."""
    file, settings = None, {}
    words = iter([part for word in shlex.split(arguments) for part in _parts(word)])
    for word in words:
        if word in ("--conf", "-c"):
            name, _, value = next(words, "").partition("=")
            settings[name] = value
        elif word == "--properties-file":
            file = next(words, None)
        elif word in _OPTIONS:
            settings[_OPTIONS[word]] = next(words, "")
    return file, settings


def _parts(word: str) -> list[str]:
    """``--option=value`` as two words."""
    return word.split("=", 1) if word.startswith("--") else [word]


def _hive_site(folders: list[Path]) -> frozenset[str] | None:
    file = next((folder / "hive-site.xml" for folder in folders if (folder / "hive-site.xml").exists()), None)
    if file is None:
        return None
    try:
        names = ElementTree.fromstring(_text(file)).iterfind("property/name")
    except ElementTree.ParseError as error:
        raise ConfigError(f"{file} cannot be read: {error}", "Spark cannot read it either: mend it.") from error
    return frozenset((name.text or "").strip() for name in names)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "Spark cannot read it either: mend it.") from error
