"""Postgres' NUMERIC in binary: digits of base 10000, the weight of the first one, a sign, and the scale."""

from __future__ import annotations

import struct
from decimal import Decimal

from dbt_incremental_dd.serve.pgwire.errors import PgError

_NEGATIVE, _NAN, _INFINITE, _NEGATIVE_INFINITE = 0x4000, 0xC000, 0xD000, 0xF000
_SPECIAL = {_NAN: Decimal("NaN"), _INFINITE: Decimal("Infinity"), _NEGATIVE_INFINITE: Decimal("-Infinity")}


def pack(value: Decimal | int) -> bytes:
    """A finite number in binary."""
    sign, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    text = "".join(map(str, digits)) + "0" * (exponent if exponent > 0 else 0)
    whole, fraction = text[: max(len(text) - scale, 0)], text.zfill(scale)[len(text.zfill(scale)) - scale :]
    whole = whole.zfill(-(-len(whole) // 4) * 4)
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    weight = len(whole) // 4 - 1
    both = whole + fraction
    groups = [int(both[i : i + 4]) for i in range(0, len(both), 4)]
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    head = struct.pack("!HhHH", len(groups), weight if groups else 0, _NEGATIVE if sign else 0, scale)
    return head + struct.pack(f"!{len(groups)}H", *groups)


def unpack(data: bytes) -> Decimal:
    """The number, exactly. Raises PgError if the bytes are malformed."""
    if len(data) < 8:
        raise PgError("22P03", "a numeric parameter in binary is too short")
    count, weight, sign, scale = struct.unpack("!HhHH", data[:8])
    if sign in _SPECIAL:
        return _SPECIAL[sign]
    if len(data) != 8 + 2 * count or sign not in (0, _NEGATIVE):
        raise PgError("22P03", "a numeric parameter in binary is malformed")
    groups = struct.unpack(f"!{count}H", data[8:])
    digits = "".join(f"{group:04d}" for group in groups) or "0"
    point = (weight + 1) * 4 if groups else 1
    digits = digits.ljust(point + scale, "0") if point >= 0 else digits
    whole, fraction = (digits[:point], digits[point:]) if point >= 0 else ("", "0" * -point + digits)
    return Decimal(f"{'-' if sign else ''}{whole or '0'}.{fraction[:scale].ljust(scale, '0')}".rstrip("."))
