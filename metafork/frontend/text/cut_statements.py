"""Undecided ``#if``s and the statements around them.

All branches are parsed one behind the other.  That shows what any of them does where each branch holds whole statements
of one block; where a directive stands in the middle of a statement, what follows may belong to it or not
(``if (c)``, ``#ifdef A``, ``return;``, ``#endif``, ``g = 3;``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from metafork.frontend.text import syntax
from metafork.frontend.text.preprocessing.branches import Conditional

Simple = syntax.Declaration | syntax.ExpressionStatement | syntax.Opaque | syntax.Jump


def cut_statement(block: syntax.Block, conditional: Conditional) -> syntax.Statement | None:
    """Return the statement that a conditional cuts, ``None`` where its branches hold whole statements of a block."""
    items = [item for item in block.items if item.span.start < conditional.end and conditional.start < item.span.end]
    branches = list(pairwise(conditional.marks))
    if all(any(start <= item.span.start and item.span.end <= end for start, end in branches) for item in items):
        return None
    if len(items) > 1:
        return block
    for inner in _blocks(items[0]):
        if inner.span.start < conditional.start and conditional.end < inner.span.end:
            return cut_statement(inner, conditional)
    return items[0]


def _blocks(statement: syntax.Statement) -> Iterator[syntax.Block]:
    """Yield the outermost blocks of a statement, itself included."""
    if isinstance(statement, syntax.Block):
        yield statement
        return
    for child in syntax.direct_statements(statement):
        yield from _blocks(child)
