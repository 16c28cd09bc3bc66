"""Spark's types as its SQL writes them, and what plans need to know of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbt_incremental_dd.core import types as spark

_NAMES = {spark.LONG: "BIGINT", spark.INTEGER: "INT", spark.SHORT: "SMALLINT", spark.BYTE: "TINYINT"}
_ATOMIC = {
    **{name.lower(): type for type, name in _NAMES.items()},
    **dict.fromkeys(("byte", "tinyint"), spark.BYTE),
    **dict.fromkeys(("short", "smallint"), spark.SHORT),
    **dict.fromkeys(("int", "integer"), spark.INTEGER),
    **dict.fromkeys(("long", "bigint"), spark.LONG),
    **dict.fromkeys(("float", "real"), spark.FLOATS[0]),
    "double": spark.DOUBLE,
    "void": spark.VOID,
    "boolean": spark.BOOLEAN,
    "string": spark.STRING,
    "binary": spark.BINARY,
    "date": spark.DATE,
    "timestamp_ltz": spark.TIMESTAMP,
    "timestamp": spark.TIMESTAMP,
    "timestamp_ntz": spark.TIMESTAMP_NTZ,
}
"""TIMESTAMP is by a setting of Spark's what it is here; see ``lazy_session``."""
_WORD = re.compile(r"`(?:[^`]|``)+`|\w+|[<>(),:]", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MOST_DIGITS = 38


def is_orderable(type: spark.Type) -> bool:
    """Whether ORDER BY takes the type: maps and variants have no order."""
    match type:
        case spark.Array():
            return is_orderable(type.element)
        case spark.Struct():
            return all(is_orderable(field.type) for field in type.fields)
        case spark.Map():
            return False
    return type not in (spark.VARIANT, spark.CALENDAR_INTERVAL)


def sql_type(type: spark.Type) -> str:
    """The type as SQL writes it in a CAST."""
    match type:
        case spark.Array():
            return f"ARRAY<{sql_type(type.element)}>"
        case spark.Map():
            return f"MAP<{sql_type(type.key)}, {sql_type(type.value)}>"
        case spark.Struct():
            fields = (f"`{field.name.replace('`', '``')}`: {sql_type(field.type)}" for field in type.fields)
            return f"STRUCT<{', '.join(fields)}>"
    return _NAMES.get(type, type.text.upper())


def described(type: spark.Type) -> str:
    """The type as DESCRIBE has it."""
    match type:
        case spark.Array():
            return f"array<{described(type.element)}>"
        case spark.Map():
            return f"map<{described(type.key)},{described(type.value)}>"
        case spark.Struct():
            return f"struct<{','.join(f'{field.name}:{described(field.type)}' for field in type.fields)}>"
    return sql_type(type).lower()


def type_of(sql: str) -> spark.Type:
    """The type that SQL's name of it means. Raises ValueError for one that only Spark may know."""
    if _WORD.sub("", sql).strip():
        raise ValueError(f"there is no type {sql!r}")
    reader = _Reader(_WORD.findall(sql))
    found = reader.type()
    if reader.word:
        raise ValueError(f"there is no type {sql!r}")
    return found


class _Reader:
    """Reads types word by word, by Spark's grammar of them: ``dataType`` in SqlBaseParser.g4."""

    def __init__(self, words: list[str]) -> None:
        self._words = [*words, ""]
        self._at = 0

    @property
    def word(self) -> str:
        """The next word in lower case, empty behind the last one."""
        return self._words[self._at].lower()

    def type(self) -> spark.Type:
        """The type that begins here."""
        name = self._take()
        match name:
            case "array":
                self._expect("<")
                element = self.type()
                self._expect(">")
                return spark.Array(element)
            case "map":
                self._expect("<")
                key = self.type()
                self._expect(",")
                value = self.type()
                self._expect(">")
                return spark.Map(key, value)
            case "struct":
                return spark.Struct(tuple(self._fields()))
            case "decimal" | "dec" | "numeric":
                return self._decimal()
        if name not in _ATOMIC or self.word == "(":
            raise ValueError(f"there is no type {name!r}")
        return _ATOMIC[name]

    def _fields(self) -> Iterator[spark.Field]:
        self._expect("<")
        while True:
            written = self._words[self._at]
            name = written[1:-1].replace("``", "`") if written.startswith("`") else written
            if not name or not (written.startswith("`") or _PLAIN.fullmatch(name)):
                raise ValueError(f"{written!r} is no field's name")
            self._at += 1
            if self.word == ":":
                self._at += 1
            yield spark.Field(name, self.type())
            if self._take() == ">":
                return
            if self._words[self._at - 1] != ",":
                raise ValueError("a field is followed by something else than the next one")

    def _decimal(self) -> spark.Type:
        if self.word != "(":
            return spark.Decimal(10, 0)
        self._at += 1
        digits = [int(self._take())]
        if self.word == ",":
            self._at += 1
            digits.append(int(self._take()))
        self._expect(")")
        precision, scale = (*digits, 0)[:2]
        if not 1 <= precision <= _MOST_DIGITS or scale > precision:
            raise ValueError(f"there is no decimal of {precision} digits, {scale} behind the point")
        return spark.Decimal(precision, scale)

    def _take(self) -> str:
        word = self.word
        self._at = min(self._at + 1, len(self._words) - 1)
        return word

    def _expect(self, word: str) -> None:
        found = self._take()
        if found != word:
            raise ValueError(f"{found!r} stands where {word} is expected")
