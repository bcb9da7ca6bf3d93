"""Stretches of the host during which arrays may stay on the device, in functions that ``residency`` cannot follow.

A serial loop around schedules is one when its other code provably leaves the arrays alone: it mentions none of them,
calls nothing but pure functions and printing ones, follows no pointer, touches no array that may overlap them, and has
no other way out than its end.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from msgspec import Struct

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Site, Variable
from metafork.frontend.text import syntax
from metafork.ir.messages.source import Span
from metafork.ir.program import Program
from metafork.ir.translation_unit import Transfer


class _Around(Struct, frozen=True):
    """What surrounds a statement: its function, a schedule in it, and the arrays that are to stay on the device.

    Where there are ``pointers`` among these, they may lead to any array of the function.
    """

    host: HostFunction
    site: Site
    arrays: frozenset[str]
    pointers: bool


_Loop = syntax.ForStatement | syntax.WhileStatement


def transfers(
    host: HostFunction, sites: Mapping[int, Site], programs: Mapping[int, Program], fixed: Collection[int] = ()
) -> tuple[Transfer, ...]:
    """Return the outermost loops of one function around which arrays move once; keys are schedule numbers.

    Of those that begin at ``fixed`` offsets nothing is known: pragmas stand there, and other threads may run them.
    """
    loops: dict[Span, _Loop] = {}
    for site in sites.values():
        for loop in site.loops:
            loops.setdefault(loop.span, loop)  # of two that one macro gives, the outer one
    found: list[Transfer] = []
    for span in sorted(loops):
        if any(one.span.start <= span.start and span.end <= one.span.end for one in found):
            continue
        inside = [number for number, site in sites.items() if _within(site.statement.span, span)]
        arrays = _arrays(inside, programs)
        # What stands around the loop must be separable from it in the text, and all of the loop must be known.
        certain = (
            span.start not in fixed
            and loops[span].separate
            and not host.has_unknown(span)
            and not host.within_condition(span)
        )
        if arrays and certain and all(_leaves_alone(host, loops[span], sites[number], arrays) for number in inside):
            found.append(Transfer(span, tuple(inside), arrays))
    return tuple(found)


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _arrays(numbers: list[int], programs: Mapping[int, Program]) -> tuple[str, ...]:
    declared = {array.whole or array.name: array.span for number in numbers for array in programs[number].arrays}
    return tuple(sorted(declared, key=lambda name: declared[name]))


def _leaves_alone(host: HostFunction, loop: _Loop, site: Site, arrays: tuple[str, ...]) -> bool:
    for name in arrays:
        variable = site.visible.get(name)
        # An array that lives inside the loop is a new one in every iteration.
        if variable is None or loop.span.start <= variable.span.start < loop.span.end:
            return False
    pointers = any(site.visible[name].pointed is not None and not site.visible[name].is_parameter for name in arrays)
    return _harmless(loop, _Around(host, site, frozenset(arrays), pointers), depth=0)


def _harmless(statement: syntax.Statement, around: _Around, depth: int) -> bool:
    """``depth`` counts the loops and switches between the statement and the outermost loop, that one included."""
    match statement:
        case syntax.ScheduleStatement() | syntax.Empty():
            return True
        case syntax.Opaque() | syntax.LabelledStatement(label=_, body=_) if not _is_case(statement):
            return False
        case syntax.Jump(word="goto" | "return"):
            return False
        case syntax.Jump(word="break") if depth <= 1:
            return False
        case _:
            pass
    if isinstance(statement, syntax.Declaration) and any(
        declarator.type.pointers or "static" in declarator.type.storage for declarator in statement.declarators
    ):
        return False
    first = statement.init if isinstance(statement, syntax.ForStatement) else None
    if isinstance(first, syntax.Declaration) and not _harmless(first, around, depth):
        return False
    if not all(_pure(expression, around) for expression in syntax.direct_expressions(statement)):
        return False
    deeper = isinstance(statement, syntax.ForStatement | syntax.WhileStatement | syntax.SwitchStatement)
    return all(
        _harmless(child, around, depth + 1 if deeper else depth) for child in syntax.direct_statements(statement)
    )


def _is_case(statement: syntax.Statement) -> bool:
    return isinstance(statement, syntax.LabelledStatement) and statement.label in ("case", "default")


def _pure(expression: syntax.Expression, around: _Around) -> bool:
    visible = around.site.visible
    for node in syntax.walk(expression):
        match node:
            case syntax.Name(name=name):
                variable = visible.get(name)
                if name in around.arrays or (variable is not None and _may_reach(variable)):
                    return False
                if around.pointers and variable is not None and variable.element is not None:
                    return False
            case syntax.Prefix(op="*" | "&") | syntax.Member() | syntax.Unsupported() | syntax.Literal():
                return False
            case syntax.Subscript(base=base):
                while isinstance(base, syntax.Subscript):
                    base = base.base
                if not isinstance(base, syntax.Name) or not _own_array(base.name, around.site):
                    return False
            case syntax.Invocation(callee=callee):
                if not isinstance(callee, syntax.Name) or callee.name in visible:
                    return False
                # A macro that is not certain is a plain value, or the loop is not known.
                if not around.host.known.harmless(callee.name) and not callee.uncertain:
                    return False
            case _:
                pass
    return True


def _may_reach(variable: Variable) -> bool:
    """Whether a variable may be written from elsewhere, or lead to an array: a pointer, but to a file."""
    pointer = variable.fault == "MF0201" and not variable.is_file
    return variable.is_global or variable.escapes < math.inf or pointer


def _own_array(name: str, site: Site) -> bool:
    """Whether a name is an array of this very function, which overlaps no other."""
    variable = site.visible.get(name)
    return variable is not None and bool(variable.extents) and not variable.is_parameter and not variable.is_global
