"""Decimal numbers as the log has them ("decimal.c" of MySQL)."""

from __future__ import annotations

from collections.abc import Callable

_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def packed_decimal(precision: int, scale: int) -> Callable[[bytes, int], tuple[bytes, int]]:
    """Reads one: its text, and where it ends. Groups of nine digits are in four bytes, the outermost ones of fewer
    digits; the first bit is that of the sign, inverted, and a negative number has all bits inverted."""
    whole = precision - scale
    sizes = [
        (whole % 9, _DIGIT_BYTES[whole % 9]),
        *[(9, 4)] * (whole // 9),
    ]
    tail = [*[(9, 4)] * (scale // 9), (scale % 9, _DIGIT_BYTES[scale % 9])]
    total = sum(size for _, size in (*sizes, *tail))

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        found = bytearray(data[at : at + total])
        is_negative = not found[0] & 0x80
        found[0] ^= 0x80
        if is_negative:
            found = bytearray(byte ^ 0xFF for byte in found)
        place, parts = 0, []
        for digits, size in (*sizes, *tail):
            if digits:
                parts.append(b"%0*d" % (digits, int.from_bytes(found[place : place + size], "big")))
            place += size
        text = b"".join(parts)
        left = text[:whole].lstrip(b"0") or b"0"
        sign = b"-" if is_negative else b""
        return sign + left + (b"." + text[whole:] if scale else b""), at + total

    return read
