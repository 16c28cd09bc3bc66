"""What is known of a syntax tree, kept with its nodes.

Trees of expressions are shared and read again and again, so what takes long to find out is written beside a node. A
copy of a tree is there to be changed: it begins without notes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from sqlglot import exp

_NOTES = "dd_notes"
T = TypeVar("T")


class _Notes(dict[Hashable, object]):
    """What was found out of one node, by the function that found it."""

    def __deepcopy__(self, memo: object) -> _Notes:
        """None: sqlglot copies what is kept with a node together with it."""
        return _Notes()


def noted(node: exp.Expr, of: Callable[[exp.Expr], T]) -> T:
    """``of(node)``, found out once; the node does not change any more."""
    notes = node.meta.setdefault(_NOTES, _Notes())
    assert isinstance(notes, _Notes)
    if of not in notes:
        notes[of] = of(node)
    return cast(T, notes[of])
