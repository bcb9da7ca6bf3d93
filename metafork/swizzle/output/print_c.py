"""Plain C: one function a solution that works on one tile, array by array, with loops over the cells.

This form needs no threads, so it prints every sketch, also those for vector registers.
"""

from __future__ import annotations

from math import prod
from typing import assert_never

from metafork.swizzle.model.index import Interval, to_c
from metafork.swizzle.model.problem import Case, Fold, Gather, Hole, Literal, Problem, Shape
from metafork.swizzle.model.terms import UNDEFINED, ZERO, Terms
from metafork.swizzle.output.lowering import NotLowerableError, spelled_cases
from metafork.swizzle.search.search import Solution

_NEUTRAL = {"+": "0", "^": "0", "|": "0", "*": "1", "&": "~(SWIZZLE_TYPE)0"}
PREAMBLE = """\
#ifndef SWIZZLE_TYPE
#define SWIZZLE_TYPE float
#endif
"""


def print_c(problem: Problem, solutions: list[tuple[str, Solution]]) -> str:
    """Print a file with one function a (name, solution)."""
    return PREAMBLE + "".join("\n" + _function(problem, name, solution) for name, solution in solutions)


def _function(problem: Problem, name: str, solution: Solution) -> str:
    cases = spelled_cases(problem, solution)
    inputs = [one for one in problem.statements if isinstance(one, Literal) and one.is_input]
    parameters = "".join(f"const SWIZZLE_TYPE *{one.name}, " for one in inputs)
    lines = [f"void {name}({parameters}SWIZZLE_TYPE *out)", "{"]
    for one in problem.statements:
        array = _identifier(problem, one.name)
        if not (isinstance(one, Literal) and one.is_input):
            lines.append(f"    SWIZZLE_TYPE {array}[{prod(one.shape)}];")
    for one in problem.statements:
        match one:
            case Literal():
                if not one.is_input:
                    lines += _literal(problem, one, inputs)
            case Gather(title=_, arguments=arguments, shape=shape):
                lines += _movement(problem, one.name, shape, cases[one.name], arguments)
            case Hole(shape=shape, argument=argument):
                lines += _movement(problem, one.name, shape, cases[one.name], (argument,))
            case Fold():
                lines += _fold(problem, one)
            case _:
                assert_never(one)
    size = prod(problem.statement(problem.goal).shape)
    lines += [
        f"    for (int e = 0; e < {size}; e++)",
        f"        out[e] = {_identifier(problem, problem.goal)}[e];",
        "}",
        "",
    ]
    return "\n".join(lines)


def _identifier(problem: Problem, name: str) -> str:
    """Inputs keep their names; computed arrays get a suffix, so that none is called as the output parameter."""
    one = problem.statement(name)
    return name if isinstance(one, Literal) and one.is_input else name.replace(".", "_") + "_cells"


def _ranges(shape: Shape) -> dict[str, Interval]:
    return {f"d{axis}": (0, length - 1) for axis, length in enumerate(shape)}


def _cell(shape: Shape) -> str:
    text = "0"
    for axis, length in enumerate(shape):
        text = f"d{axis}" if axis == 0 else f"({text}) * {length} + d{axis}"
    return text


def _loops(shape: Shape) -> list[str]:
    return [
        f"{'    ' * (axis + 1)}for (int d{axis} = 0; d{axis} < {length}; d{axis}++)"
        for axis, length in enumerate(shape)
    ]


def _movement(
    problem: Problem, name: str, shape: Shape, cases: tuple[Case, ...], arguments: tuple[str, ...]
) -> list[str]:  # fmt: skip
    ranges = _ranges(shape)
    value = ""
    for case in cases:
        read = "0"
        if case.read is not None:
            argument = arguments[case.read.argument]
            at = "0"
            lengths = problem.statement(argument).shape
            for axis, (index, length) in enumerate(zip(case.read.indices, lengths, strict=True)):
                text = to_c(index, ranges)
                at = text if axis == 0 else f"({at}) * {length} + ({text})"
            read = f"{_identifier(problem, argument)}[{at}]"
        if case.guard is None:
            value += read
            break
        value += f"({to_c(case.guard, ranges)}) ? {read} : "
    else:
        value += "0"
    lines = _loops(shape)
    lines.append(f"{'    ' * (len(shape) + 1)}{_identifier(problem, name)}[{_cell(shape)}] = {value};")
    return lines


def _fold(problem: Problem, fold: Fold) -> list[str]:
    count = prod(fold.shape)
    size = prod(problem.statement(fold.argument).shape) // count
    name, argument = _identifier(problem, fold.name), _identifier(problem, fold.argument)
    return [
        f"    for (int e = 0; e < {count}; e++) {{",
        f"        {name}[e] = {_NEUTRAL[fold.op]};",
        f"        for (int m = 0; m < {size}; m++)",
        f"            {name}[e] = {name}[e] {fold.op} {argument}[e * {size} + m];",
        "    }",
    ]


def _literal(problem: Problem, literal: Literal, inputs: list[Literal]) -> list[str]:
    place = {term: f"{one.name}[{at}]" for one in inputs for at, term in enumerate(one.terms.tolist())}
    place |= {ZERO: "0", UNDEFINED: "0"}
    return [
        f"    {_identifier(problem, literal.name)}[{cell}] = {_term(problem.terms, place, term)};"
        for cell, term in enumerate(literal.terms.tolist())
    ]


def _term(terms: Terms, place: dict[int, str], term: int) -> str:
    if term not in place:
        raise NotLowerableError(f"the literal term {terms.text(term)} is no element of an input")
    return place[term]
