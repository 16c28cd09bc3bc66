"""Functions whose result can be much larger than their arguments. DuckDB cannot interrupt a call, so macros of the same
names refuse arguments that request too much."""

from __future__ import annotations

MAX_SIZE = 100_000
"""Maximum number of characters, bytes or elements that one call may produce."""
_MAX_PAIRS = 100_000
"""Maximum number of pairs of characters that one call may compare."""

_DISTANCES = ("levenshtein", "editdist3", "damerau_levenshtein", "jaro_similarity", "jaro_winkler_similarity")
_PADS = ("lpad", "rpad")
_RANGES = ("range", "generate_series")
_RESIZES = ("list_resize", "array_resize")
FORMATS = frozenset({"format", "printf"})
"""Functions whose first argument, a format, determines the width of their result."""
SIZED = frozenset({"repeat", "bitstring", "bar", "equi_width_bins", *_DISTANCES, *_PADS, *_RANGES, *_RESIZES, *FORMATS})
"""All functions with macros here."""


def macros() -> list[str]:
    """Statements that create the macros in an empty database."""
    found = {
        "repeat": [_call("repeat", "x, n", f"length(x::VARCHAR)::DOUBLE * n > {MAX_SIZE}", "n")],
        "bitstring": [_call("bitstring", "x, n", f"n > {MAX_SIZE}", "n")],
        "bar": ["(x, low, high) AS system.main.bar(x, low, high)", _bar()],
        "equi_width_bins": [_call("equi_width_bins", "low, high, n, nice", f"n > {MAX_SIZE}", "n")],
        **{name: [_call(name, "x, n, pad", f"n > {MAX_SIZE}", "n")] for name in _PADS},
        **{name: [_call(name, "a, b", f"length(a)::DOUBLE * length(b) > {_MAX_PAIRS}", "b")] for name in _DISTANCES},
        **{name: [_resize(name), _call(name, "x, n, value", f"n > {MAX_SIZE}", "n")] for name in _RESIZES},
        **{name: _ranges(name) for name in _RANGES},
    }
    return [f"CREATE MACRO {name}{', '.join(bodies)}" for name, bodies in found.items()]


def _call(name: str, parameters: str, too_much: str, checked: str) -> str:
    guard = f"CASE WHEN {too_much} THEN error('{name} makes too much in one call') ELSE {checked} END"
    arguments = ", ".join(guard if one == checked else one for one in parameters.split(", "))
    return f"({parameters}) AS system.main.{name}({arguments})"


def _bar() -> str:
    return _call("bar", "x, low, high, width", f"width > {MAX_SIZE}", "width")


def _resize(name: str) -> str:
    return _call(name, "x, n", f"n > {MAX_SIZE}", "n")


def _ranges(name: str) -> list[str]:
    """Macros for ranges of numbers, and of timestamps with an interval."""
    a, b, c = (f"try_cast({one}::VARCHAR AS DOUBLE)" for one in "abc")
    begin, end = (f"epoch_us(try_cast({one}::VARCHAR AS TIMESTAMP))::DOUBLE" for one in "ab")
    step = "epoch_us(try_cast(c::VARCHAR AS INTERVAL))"
    many = f"abs({b} - {a}) > {MAX_SIZE} * abs({c}) OR abs({end} - {begin}) > {MAX_SIZE}::DOUBLE * abs({step})"
    return [
        _call(name, "b", f"b > {MAX_SIZE}", "b"),
        _call(name, "a, b", f"b::DOUBLE - a > {MAX_SIZE}", "b"),
        _call(name, "a, b, c", many, "c"),
    ]
