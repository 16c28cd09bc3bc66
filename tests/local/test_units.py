"""Decimals that are computed as integers, against fractions: no Spark is needed to know what a quotient is."""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.types import LONG, Decimal, Type
from dbt_incremental_dd.local import decimals
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.trace.arrow import arrow_type

_EXACT = decimal.Context(prec=100)
_ROUNDS = 2_000


def _half_up(number: Fraction) -> int:
    units = (2 * abs(number.numerator) + number.denominator) // (2 * number.denominator)
    return units if number >= 0 else -units


def _divided(one: Fraction, other: Fraction, scale: int) -> Fraction | None:
    """By Spark's two steps: 39 digits after the point, then the type's."""
    if not other:
        return None
    kept = Fraction(_half_up(one / other * 10**39), 10**39)
    return Fraction(_half_up(kept * 10**scale), 10**scale)


def _multiplied(one: Fraction, other: Fraction, scale: int) -> Fraction:
    """By Spark's two steps: 39 digits in all, then the type's scale."""
    product = one * other
    exact = _EXACT.divide(decimal.Decimal(product.numerator), decimal.Decimal(product.denominator))
    kept = Fraction(decimal.Context(prec=39, rounding=decimal.ROUND_HALF_UP).plus(exact))
    return Fraction(_half_up(kept * 10**scale), 10**scale)


def _rest(one: Fraction, other: Fraction, scale: int) -> Fraction | None:
    return one - other * int(one / other) if other else None


def _whole(one: Fraction, other: Fraction, scale: int) -> Fraction | None:
    return Fraction(int(one / other)) if other else None


OPERATIONS: dict[str, Callable[[Fraction, Fraction, int], Fraction | None]] = {
    "divide": _divided,
    "multiply": _multiplied,
    "remainder": _rest,
    "whole_quotient": _whole,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_that_of_fractions(name: str) -> None:
    rng, computed = random.Random(name), 0
    for _ in range(_ROUNDS):
        one, other = _value(rng, _type(rng)), _value(rng, _type(rng))
        if one.type == LONG == other.type:
            continue
        try:
            found = getattr(decimals, name)(one, other)
        except (NotExact, pa.ArrowException):
            continue
        computed += 1
        scale = found.type.scale if isinstance(found.type, Decimal) else 0
        rows = zip(_fractions(one), _fractions(other), strict=True)
        wanted = [None if a is None or b is None else OPERATIONS[name](a, b, scale) for a, b in rows]
        assert _fractions(found) == wanted, (one, other)
    assert computed > _ROUNDS / 20


def test_many_quotients_at_once_are_those_of_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of numbers for which parts of 64 bits do; and all others are left to Python's integers."""
    monkeypatch.setattr(decimals, "_MANY", 1)
    at_once = 0

    def counting(*given: Any, divided: Callable[..., Any] = decimals.quotients) -> Any:
        nonlocal at_once
        found = divided(*given)
        at_once += 1
        return found

    monkeypatch.setattr(decimals, "quotients", counting)
    rng = random.Random(2)
    for _ in range(2 * _ROUNDS):
        one, other = _value(rng, _type(rng)), _value(rng, _type(rng))
        if one.type == LONG == other.type:
            continue
        other = Value(other.data[1], other.type) if rng.random() < 0.3 else other
        try:
            found = decimals.divide(one, other)
        except (NotExact, pa.ArrowException):
            continue
        assert isinstance(found.type, Decimal)
        scale, divisors = found.type.scale, [other.data.as_py()] * 3 if isinstance(other.data, pa.Scalar) else None
        rows = zip(_fractions(one), _fractions(other) if divisors is None else divisors, strict=True)
        wanted = [None if a is None or b is None else _divided(a, Fraction(b), scale) for a, b in rows]
        assert _fractions(found) == wanted, (one, other)
    assert at_once > _ROUNDS / 2


@pytest.mark.parametrize("many", [1, 1_000])
def test_ties_are_rounded_away_from_zero(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """An odd number of 128ths has seven digits after the point, the last of them a 5; the type has six."""
    monkeypatch.setattr(decimals, "_MANY", many)
    numbers = [Fraction(n, 8) for n in range(-41, 42, 2)]
    one = [decimal.Decimal(n.numerator) / n.denominator for n in numbers]
    other = Value(pa.scalar(decimal.Decimal(16), pa.decimal128(2, 0)), Decimal(2, 0))
    found = decimals.divide(Value(pa.chunked_array([pa.array(one, pa.decimal128(18, 3))]), Decimal(18, 3)), other)
    assert isinstance(found.type, Decimal) and found.type.scale == 6
    wanted = [Fraction(_half_up(n / 16 * 10**6), 10**6) for n in numbers]
    assert all(abs(n / 16 - rounded) == Fraction(5, 10**7) for n, rounded in zip(numbers, wanted, strict=True))
    assert _fractions(found) == wanted


def test_a_cast_rounds_half_up() -> None:
    rng, computed = random.Random(1), 0
    for _ in range(_ROUNDS):
        value, type = _value(rng, _type(rng)), _decimal(rng)
        try:
            found = decimals.cast(value, type)
        except (NotExact, pa.ArrowException):
            continue
        computed += 1
        unit = 10**type.scale
        wanted = [None if a is None else Fraction(_half_up(a * unit), unit) for a in _fractions(value)]
        assert _fractions(found) == wanted, (value, type)
    assert computed > _ROUNDS / 10


def test_no_rows() -> None:
    nothing = Value(pa.chunked_array([pa.array([], pa.decimal128(12, 2))]), Decimal(12, 2))
    assert decimals.divide(nothing, nothing).data.to_pylist() == []


def _type(rng: random.Random) -> Type:
    return LONG if rng.random() < 0.15 else _decimal(rng)


def _decimal(rng: random.Random) -> Decimal:
    precision = rng.choice([1, 2, 5, 12, 18, 19, 25, 37, 38, rng.randrange(1, 39)])
    return Decimal(precision, rng.randrange(precision + 1))


def _value(rng: random.Random, type: Type) -> Value:
    """Three rows, in one chunk or in two: small numbers, large ones, halves, and NULL."""
    digits, scale = (type.precision, type.scale) if isinstance(type, Decimal) else (18, 0)
    numbers = [
        rng.choice([None, 0, 5, -5, 15, 10 ** (digits - 1), rng.randrange(10 ** rng.randrange(1, digits + 1))])
        for _ in range(3)
    ]
    fitting = [None if n is None or abs(n) >= 10**digits else rng.choice([n, -n]) for n in numbers]
    exact = [None if n is None else _EXACT.scaleb(decimal.Decimal(n), -scale) for n in fitting]
    whole = pa.array(fitting if type == LONG else exact, arrow_type(type))
    cut = rng.randrange(3)
    return Value(pa.chunked_array([whole.slice(0, cut), whole.slice(cut)]), type)


def _fractions(value: Value) -> list[Fraction | None]:
    return [None if number is None else Fraction(number) for number in value.data.to_pylist()]
