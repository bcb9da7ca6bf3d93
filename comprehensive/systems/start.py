"""Start: the machine's symbols and the system that holds before any condition of the tree (DESIGN sections 2 and 6).

Machine parameters and parameters are non-negative, trip counts and divisors at least 1, dividends non-negative, block
extents within the hardware's per-dimension limits, targets of ratios at most 1; the program's assertions, what defines
its derived scalars, and what keeps its unsigned arithmetic exact join in.  A machine symbol that is also a name of the
input gets a trailing underscore.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from msgspec import Struct, field

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.exactness import irredundant
from metafork.analysis.facts import program_facts
from metafork.analysis.values.scope import Scope
from metafork.comprehensive.systems.points import Number
from metafork.evaluators.counter import details_of
from metafork.ir.program import ParameterKind, Phase, Program, walk_statements
from metafork.runtime.machine import POSITIVE, Between
from metafork.runtime.machine import SYMBOLS as LIMITS

BLOCK_DIMENSIONS = ("block_dim_x", "block_dim_y", "block_dim_z")

_WORD = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|([A-Za-z_]\w*)', re.DOTALL)


class Limited(Protocol):
    """What Start needs to know of a counter."""

    @property
    def name(self) -> str:
        """What the user calls it."""
        ...

    @property
    def kind(self) -> str:
        """``resource`` or ``performance``."""
        ...

    @property
    def symbol(self) -> str:
        """The machine's symbol that it is compared with."""
        ...

    @property
    def less_is_better(self) -> bool:
        """Whether a smaller value is accepted."""
        ...


class Start(Struct, frozen=True):
    """The start system of one schedule and the symbols that it is about.

    ``data``, ``program`` and ``opaque`` are integer symbols of the input, ``serial`` those of ``program`` that are
    variables of serial loops around the schedule.  ``machine`` maps the machine's fields, and the names of performance
    targets, to symbols; ``fixed`` gives numbers to some of these symbols.  ``canonical`` maps the symbols that
    counters use (``T``) to those of this input (``T_``).
    """

    data: tuple[str, ...]
    program: tuple[str, ...]
    machine: Mapping[str, str]
    constraints: tuple[Constraint, ...]
    canonical: Mapping[str, str]
    derived: tuple[DerivedSymbol, ...] = ()
    targets: frozenset[str] = frozenset()
    fixed: Mapping[str, Number] = field(default_factory=dict)
    opaque: tuple[str, ...] = ()
    serial: frozenset[str] = frozenset()
    notes: tuple[tuple[str, str], ...] = ()

    @property
    def real(self) -> frozenset[str]:
        """The symbols that stand for rational numbers: targets of performance counters."""
        return self.targets - self.fixed.keys()

    @property
    def unknown_machine(self) -> tuple[str, ...]:
        """The machine's symbols without a number."""
        return tuple(symbol for symbol in self.machine.values() if symbol not in self.fixed)

    @property
    def order(self) -> tuple[str, ...]:
        """The order of symbols within a printed product."""
        return (*self.program, *self.data, *(symbol.name for symbol in self.derived), *self.machine.values())

    def limit(self, canonical: str) -> Polynomial:
        """Return the limit that a counter's symbol names: its symbol here, or its number."""
        symbol = self.canonical[canonical]
        if symbol in self.fixed:
            return Polynomial.constant(self.fixed[symbol])
        return Polynomial.symbol(symbol)

    def small_values(self) -> dict[str, tuple[int, ...]]:
        """Return the values to try for each integer symbol of the input, best first."""
        values: dict[str, tuple[int, ...]] = dict.fromkeys(self.opaque, (1, 2, 4, 0))
        values |= dict.fromkeys(self.data, (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64, 0))
        for name in self.program:
            values[name] = (0, 1) if name in self.serial else (1, 2, 3, 4, 8, 0)
        return values


def identifiers(text: str) -> frozenset[str]:
    """Return the identifiers of a C text, comments and strings apart."""
    return frozenset(match[1] for match in _WORD.finditer(text) if match[1])


def machine_symbols(symbols: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """Return each machine symbol with the name that it has here: ``T`` is ``T_`` where the input has a ``T``."""
    names: dict[str, str] = {}
    for symbol in symbols:
        name = symbol
        while name in taken or name in names.values():
            name += "_"
        names[symbol] = name
    return names


def start_of(
    program: Program,
    counters: Sequence[Limited],
    taken: Collection[str] = (),
    fixed: Mapping[str, Number | Between] | None = None,
) -> Start:
    """Return the start system of a program.

    ``taken`` are the identifiers of the whole input; ``fixed`` gives numbers, or bounds, to canonical machine symbols
    or fields (``T`` or ``threads_per_block``); fields that no condition uses are ignored.
    """
    facts = program_facts(program)
    scope = Scope.of(facts)
    parameters = {parameter.name for parameter in program.parameters}
    derived = {symbol.name for symbol in facts.derived} | {derived.name for derived in program.derived}
    taken = {*taken, *parameters, *derived, *facts.opaque}
    targets = {c.symbol: c for c in counters if c.kind == "performance"}
    used = [c.symbol for c in counters if c.kind == "resource" and c.symbol not in LIMITS.values()]
    threads = [phase.threads for phase in walk_statements(program.body) if isinstance(phase, Phase)]
    depth = max((len(loops) for loops in threads), default=0)
    asked = {name for counter in counters for name in details_of(counter).machine}
    used += sorted(asked)
    fields = {**LIMITS, **{name: name for name in BLOCK_DIMENSIONS[:depth]}, **{name: name for name in used}}
    canonical = machine_symbols([*fields.values(), *targets], taken)
    machine = {name: canonical[symbol] for name, symbol in fields.items()}
    machine |= {symbol: canonical[symbol] for symbol in targets}
    numbers: dict[str, Number] = {}
    bounds: list[Constraint] = []
    for key, number in (fixed or {}).items():
        symbol = machine.get(key) or canonical.get(key)
        if symbol is None:
            continue
        if isinstance(number, Between):
            bounds += within(symbol, number)
        else:
            numbers[symbol] = int(number) if Fraction(number).denominator == 1 else number

    others = [constraint for constraint in facts.constraints if constraint not in program.exactness]
    constraints = [*irredundant(program.exactness, (*others, *facts.limits), facts.derived), *others]
    notes: list[tuple[str, str]] = []
    for loops in threads:
        for name, loop in zip(BLOCK_DIMENSIONS, reversed(loops), strict=False):
            extent = scope.polynomial(loop.extent)
            if extent is None:
                notes.append(("start", f"the extent of thread loop {loop.var} is no polynomial: {name} is not checked"))
                continue
            constraints.append(at_most(extent, _symbol_or_number(machine[name], numbers)))
    constraints += [at_most(ZERO, Polynomial.symbol(symbol)) for symbol in machine.values() if symbol not in numbers]
    divisors = [machine[name] for name in sorted(asked & POSITIVE)]
    constraints += [at_most(ONE, Polynomial.symbol(symbol)) for symbol in divisors if symbol not in numbers]
    constraints += bounds
    for symbol, counter in targets.items():
        if not counter.less_is_better and canonical[symbol] not in numbers:
            constraints.append(at_most(Polynomial.symbol(canonical[symbol]), ONE))
    return Start(
        data=tuple(p.name for p in program.parameters if p.kind is ParameterKind.DATA),
        program=tuple(p.name for p in program.parameters if p.kind is ParameterKind.PROGRAM),
        machine=machine,
        constraints=tuple(dict.fromkeys(constraints)),
        canonical=canonical,
        derived=facts.derived,
        targets=frozenset(canonical[symbol] for symbol in targets),
        fixed=numbers,
        opaque=tuple(sorted(facts.opaque)),
        serial=frozenset(p.name for p in program.parameters if p.of_serial_loop),
        notes=tuple(notes),
    )


def within(symbol: str, bounds: Between) -> tuple[Constraint, Constraint]:
    """Return that a symbol lies between two numbers."""
    limit = Polynomial.symbol(symbol)
    return at_most(Polynomial.constant(bounds.least), limit), at_most(limit, Polynomial.constant(bounds.most))


def _symbol_or_number(symbol: str, numbers: Mapping[str, Number]) -> Polynomial:
    return Polynomial.constant(numbers[symbol]) if symbol in numbers else Polynomial.symbol(symbol)
