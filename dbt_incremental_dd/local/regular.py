"""Regular expressions that Java's and Python's engines take alike: both try alternatives in order and go back.

Of literals, classes of them, ``\\d \\w \\s``, groups, alternatives, ``^`` and ``$``, and greedy or lazy repetition.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dbt_incremental_dd.local.value import NotExact

LINE_ENDS = "\n\r\u0085\u2028\u2029"
_ANY = f"[^{LINE_ENDS}]"
_CLASSES = "dwsDWS"
_COUNT = re.compile(r"\{\d{1,3}(?:,\d{0,3})?\}", re.ASCII)
_CLASS = re.compile(r"(?:\\[dws.+*?/\-]|[a-zA-Z0-9]-[a-zA-Z0-9]|[^\\\-\[^])+-?", re.ASCII)
_DOUBLED = ("&&", "~~", "||", "--")
"""What means an operation on classes in one of the engines, or may come to."""
_ORDINARY = re.compile(r"[^\\^$.|?*+()\[\]{}]")


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of Java's as one of Python's that matches the same. Raises NotExact where that is not certain.

    ``$`` also matches before a line's end that ends the text: of such texts nothing is certain (``has_ends``).
    """
    reader = _Reader(pattern)
    translated = reader.alternatives()
    if not reader.is_done:
        raise NotExact
    try:
        return re.compile(translated, re.ASCII)
    except re.error as error:
        raise NotExact from error


def has_ends(pattern: str) -> bool:
    """Whether the pattern may have an end of the text in it."""
    return "$" in pattern


class _Reader:
    """Reads a pattern from left to right. ``may_be_empty``: whether what was read last may match no characters."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self.may_be_empty = True

    @property
    def is_done(self) -> bool:
        return self._at == len(self._pattern)

    def alternatives(self) -> str:
        parts, may_be_empty = [self._sequence()], self.may_be_empty
        while self._next() == "|":
            self._at += 1
            parts.append(self._sequence())
            may_be_empty = may_be_empty or self.may_be_empty
        self.may_be_empty = may_be_empty
        return "|".join(parts)

    def _sequence(self) -> str:
        found, may_be_empty = "", True
        while not self.is_done and self._next() not in "|)":
            found += self._repeated()
            may_be_empty = may_be_empty and self.may_be_empty
        self.may_be_empty = may_be_empty
        return found

    def _repeated(self) -> str:
        atom, is_empty = self._atom(), self.may_be_empty
        count = _COUNT.match(self._pattern, self._at)
        repetition = count[0] if count else self._next() if self._next() in tuple("?*+") else ""
        if not repetition:
            return atom
        if is_empty:  # what an empty repetition does to groups differs
            raise NotExact
        self._at += len(repetition)
        self.may_be_empty = repetition in "?*" or repetition.startswith("{0")
        if self._next() == "?":
            self._at += 1
            repetition += "?"
        if self._next() in tuple("?*+{"):
            raise NotExact
        return atom + repetition

    def _atom(self) -> str:
        character = self._take()
        self.may_be_empty = character in "^$"
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escaped()
        if character == "$":
            return r"\Z"
        if character == ".":
            return _ANY
        if character != "^" and not _ORDINARY.fullmatch(character):
            raise NotExact
        return character

    def _group(self) -> str:
        opening = "("
        if self._next() == "?":
            self._at += 1
            if self._take() != ":":
                raise NotExact
            opening = "(?:"
        inner = self.alternatives()
        if self._take() != ")":
            raise NotExact
        return f"{opening}{inner})"

    def _class(self) -> str:
        """Of characters, ranges of letters or digits, and escapes."""
        end = self._pattern.find("]", self._at)
        inner = self._pattern[self._at : end]
        body = inner.removeprefix("^")
        if end < 0 or not _CLASS.fullmatch(body) or any(pair in body for pair in _DOUBLED):
            raise NotExact
        self._at = end + 1
        return f"[{inner}]"

    def _escaped(self) -> str:
        character = self._take()
        if character in _CLASSES or (character.isascii() and not character.isalnum() and character not in "<> _"):
            return "\\" + character
        if character in "tnr":
            return "\\" + character
        raise NotExact

    def _next(self) -> str:
        return "" if self.is_done else self._pattern[self._at]

    def _take(self) -> str:
        if self.is_done:
            raise NotExact
        self._at += 1
        return self._pattern[self._at - 1]
