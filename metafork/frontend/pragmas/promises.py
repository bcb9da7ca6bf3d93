"""``#pragma metafork disjoint(a)`` before a statement: its accesses to ``a`` meet no other iteration's.

It vouches for what no proof is found of (MF0403), an index that is read from memory for one; C ignores it::

    #pragma metafork disjoint(a)
    a[permutation[p]] = b[p];
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from metafork.frontend.text.preprocessing.branches import Directive
from metafork.frontend.text.reporter import Reporter
from metafork.ir import program as ir
from metafork.ir.messages.source import Span
from metafork.ir.translation_unit import Promise

_DISJOINT = r"(?s)metafork\s+disjoint\b(?P<rest>.*)"
_NAMES = r"\s*\(\s*(\w+(?:\s*,\s*\w+)*)\s*\)\s*"


def promises_within(
    directives: Iterable[Directive], schedule: Span, program: ir.Program, reporter: Reporter
) -> tuple[Promise, ...]:
    """Return what the pragmas inside a schedule vouch for; one that vouches for nothing is a diagnostic (MF0322)."""
    found: list[Promise] = []
    for directive in directives:
        is_pragma = directive.word == "pragma" and schedule.start <= directive.span.start < schedule.end
        said = re.fullmatch(_DISJOINT, directive.rest.strip()) if is_pragma else None
        if said is None:
            continue
        names = re.fullmatch(_NAMES, said["rest"])
        if names is None:
            reporter.error("MF0322", directive.span, f"`{said['rest'].strip()}` names no arrays in parentheses")
            continue
        stmt = _following(program, directive.span.end)
        if not isinstance(stmt, ir.Assign | ir.Declare):
            reporter.error("MF0322", directive.span, "no assignment and no declaration follows")
            continue
        accessed = set(_accessed(stmt))
        for name in re.findall(r"\w+", names[1]):
            meant = [one.name for one in program.arrays if one.whole == name and one.name in accessed]
            if meant or name in accessed:
                found += [Promise(one, stmt.span, directive.span) for one in meant or [name]]
            else:
                reporter.error("MF0322", directive.span, f"the statement that follows touches no array `{name}`")
    return tuple(found)


def _following(program: ir.Program, offset: int) -> ir.Stmt | None:
    """Return the first statement that begins after an offset; of several that begin there, the outermost.

    The borders of blocks are conditions that begin where the body of a loop does.
    """
    after = [stmt for stmt in ir.walk_statements(program.body) if stmt.span.start >= offset]
    return min(after, key=lambda one: (one.span.start, isinstance(one, ir.If), -one.span.end), default=None)


def _accessed(stmt: ir.Stmt) -> Iterator[str]:
    if isinstance(stmt, ir.BlockArray | ir.PrivateArray):
        return
    for expr in ir.expressions_of(stmt):
        yield from (part.array for part in ir.walk_expression(expr) if isinstance(part, ir.Element))
