"""Static parameters: a program in which some parameters have become constants.

``before --> after``, for ``s = 4``::

    meta_for (int j = 0; j < n / (B * s); j++)        meta_for (int j = 0; j < n / (B * 4); j++)
      meta_for (int u = 0; u < B; u++)                  meta_for (int u = 0; u < B; u++)
        for (int w = 0; w < s; w++)                       for (int w = 0; w < 4; w++)
          c[j * s * B + w * B + u] += 1;                    c[j * 4 * B + w * B + u] += 1;

In the text, ``meta_static(s: 1, 2, 4)`` in front of a schedule says which values those may be (``Program.static``).

The program is the same wherever the parameters have these values, which whoever runs it must see to; nothing else
needs a proof.  The interface stays: parameters and declared extents of arrays are as they were, and ``s == 4`` is
assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from metafork.ir.arithmetic.types import promoted
from metafork.ir.program import Expr, IntConst, ParameterKind, Program, Var, binary
from metafork.ir.rewriting import names_of, substitute, substitute_body

StaticValues = Mapping[str, Sequence[int]]
"""The values that a kernel may be compiled for, by parameter, in the order given."""

MOST_COMBINATIONS = 1024
"""Most combinations of values of one schedule: each is lowered before it is known whether it is an instance."""


def static_parameters(program: Program) -> frozenset[str]:
    """Return the names of the parameters that may be static: program parameters that no serial loop changes."""
    return frozenset(
        parameter.name
        for parameter in program.parameters
        if parameter.kind is ParameterKind.PROGRAM and not parameter.of_serial_loop
    )


def with_static_values(program: Program, values: Mapping[str, int]) -> Program:
    """Return the program with parameters replaced by constants of their types.

    Raises ``KeyError`` where a name is no parameter of the program.
    """
    types = {parameter.name: parameter.type for parameter in program.parameters}
    # A constant narrower than int does not exist in C; where it stands, the parameter was promoted.
    constants: dict[str, Expr] = {name: IntConst(value, promoted(types[name])) for name, value in values.items()}
    equalities = [binary("==", Var(name, types[name]), constant) for name, constant in constants.items()]
    loops = {loop.var for loop in program.grid}
    inside = {name: constant for name, constant in constants.items() if name not in loops}
    return replace(
        program,
        derived=tuple(replace(one, definition=substitute(one.definition, constants)) for one in program.derived),
        assumptions=(*(substitute(one, constants) for one in program.assumptions), *equalities),
        grid=tuple(replace(loop, extent=substitute(loop.extent, constants)) for loop in program.grid),
        body=substitute_body(program.body, inside, names_of(program)),
        static=tuple((name, listed) for name, listed in program.static if name not in values),
    )
