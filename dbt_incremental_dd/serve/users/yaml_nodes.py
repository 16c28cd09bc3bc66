"""YAML read with its lines, so that each mistake is reported where it is. A key that is given twice is a mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import yaml

from dbt_incremental_dd.core.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True)
class Node:
    """A part of a YAML file. ``about``: what it describes, for messages."""

    file: str
    about: str
    node: yaml.Node

    def error(self, what: str, remedy: str = "") -> ConfigError:
        """A mistake here, with its line."""
        where = f"{self.file}, line {self.node.start_mark.line + 1}"
        return ConfigError(f"{where}: {f'{self.about}: ' if self.about else ''}{what}", remedy)

    def mapping(self) -> dict[str, Node]:
        """Its values by their keys, which describe them. Raises ConfigError if it is none, or a key is repeated."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error("a mapping of names to values is expected")
        found: dict[str, Node] = {}
        for key, value in self.node.value:
            name = Node(self.file, self.about, key).text()
            made = Node(self.file, f"{self.about}.{name}" if self.about else name, value)
            if name in found:
                raise Node(self.file, self.about, key).error(f"{name} is given twice", "Leave one of them.")
            found[name] = made
        return found

    def fields(self, known: Mapping[str, Callable[[Node], T]]) -> dict[str, T]:
        """The values of a mapping, each read by its function. Raises ConfigError for a key that is not known."""
        found = self.mapping()
        for name, node in found.items():
            if name not in known:
                raise node.error(f"{name} is no setting", f"Settings here: {', '.join(known)}.")
        return {name: known[name](node) for name, node in found.items()}

    def texts(self) -> tuple[str, ...]:
        """A list of texts, or a single one. Raises ConfigError for anything else."""
        if isinstance(self.node, yaml.SequenceNode):
            return tuple(Node(self.file, self.about, one).text() for one in self.node.value)
        return (self.text(),)

    def text(self) -> str:
        """Raises ConfigError unless it is a text that is not empty."""
        if not isinstance(self.node, yaml.ScalarNode) or not self.node.value.strip():
            raise self.error("a text is expected")
        return str(self.node.value)

    def flag(self) -> bool:
        """Raises ConfigError unless it is ``true`` or ``false``."""
        if self.text() not in ("true", "false"):
            raise self.error(f"{self.text()} is neither true nor false")
        return self.text() == "true"


def read_yaml(file: str, text: str) -> Node:
    """The file's content. Raises ConfigError, with the line, if it is no YAML, or empty."""
    try:
        found = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{file}{line}: this is no YAML: {getattr(error, 'problem', None) or error}") from error
    if found is None:
        raise ConfigError(f"{file} is empty", "See docs/serving.md for what it holds.")
    return Node(file, "", found)
