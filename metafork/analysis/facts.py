"""What is known of a program before it runs: its parameters and derived scalars as polynomials, and the constraints
under which a nest runs at all (DESIGN section 6, "Start", less the machine's part).
"""

from __future__ import annotations

from collections.abc import Iterator

from metafork.algebra.polynomial import ONE, Constraint, Polynomial, at_most
from metafork.analysis.counted_loops import CountedLoop, counted_loop
from metafork.analysis.host_arithmetic import signed_parts
from metafork.analysis.values.conditions import meaning
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType


def program_facts(program: ir.Program, demands: list[Constraint] | None = None) -> Facts:
    """Return what holds of the parameters and derived scalars whenever the nest of ``program`` runs.

    Parameters are non-negative, divisors at least 1, dividends non-negative, trip counts of ``meta_for``s and of
    granularity loops at least 1, assertions, definitions of derived scalars and ``exactness`` hold.
    What else would keep derived scalars and extents within their types joins ``demands``.
    """
    values = {parameter.name: Polynomial.symbol(parameter.name) for parameter in program.parameters}
    constraints = [at_most(0, value) for value in values.values()] + [*program.exactness]
    limits = [at_most(values[p.name], min(p.type.greatest, ScalarType.LONG.greatest)) for p in program.parameters]
    scope = Scope(values, values, premises=(*constraints, *limits), demands=demands)
    opaque: set[str] = set()
    for derived in program.derived:
        known = len(scope.derived)
        value = _derived_value(scope, derived.name, derived.definition, derived.type)
        if value is None:
            value = Polynomial.symbol(derived.name)
            constraints.append(at_most(0, value))
            opaque.add(derived.name)
            scope.constants.add(derived.name)
        scope.values[derived.name] = value
        scope.ranges.learn(constraint for symbol in scope.derived[known:] for constraint in symbol.constraints())
    for assumption in program.assumptions:
        constraints.extend(meaning(scope, assumption).constraints)
    scope.ranges.learn(constraints)
    extents = [extent for array in program.arrays for extent in array.extents]
    for extent in (*(loop.extent for loop in program.grid), *extents):
        scope.polynomial(extent)
    scope.demands = None
    running: list[Constraint] = []
    for extent, runs in _trip_counts(program):
        value = scope.polynomial(extent)
        if value is not None and not value.is_constant:
            (constraints if runs else running).append(at_most(ONE, value))
    for extent in _divisions(program):
        scope.polynomial(extent)
    for symbol in scope.derived:
        constraints.extend(symbol.constraints())
    constraints.extend(at_most(ONE, divisor) for divisor in scope.divisors)
    constraints = [c for c in dict.fromkeys(constraints) if not _always(c)]
    known_values = {name: value for name, value in scope.values.items() if value is not None}
    for part in signed_parts(program):
        value = scope.polynomial(part)
        if value is not None and not value.is_constant:
            limits.append(at_most(value, part.type.greatest))
    return Facts(
        known_values, tuple(scope.derived), tuple(constraints), frozenset(opaque), tuple(limits), tuple(running)
    )


def _always(constraint: Constraint) -> bool:
    return constraint.difference.is_constant and constraint.holds({})


def _derived_value(scope: Scope, name: str, definition: ir.Expr, type_: ScalarType) -> Polynomial | None:
    """Return the value of a derived scalar; a plain quotient gives the scalar's own name to its symbol."""
    if not (isinstance(definition, ir.Binary) and definition.op == "/"):
        return scope.converted(definition, type_)
    if type_.size < 4 and not type_.holds(definition.type):
        return None  # it may lose high bits
    sides = scope.compared(definition.left, definition.right)
    value = None if sides is None else scope.quotient("floor", *sides, name)
    if value is None or type_.holds(definition.type):
        return value
    stored = scope.stored(value, definition.type, type_)
    if stored is None and scope.derived and scope.derived[-1].name == name:
        scope.derived.pop()  # the name is that of a scalar with another value
        scope.constants.discard(name)
    return stored


def _trip_counts(program: ir.Program) -> Iterator[tuple[ir.Expr, bool]]:
    """Yield the trip counts of loops, each with whether it is at least 1 in every launch.

    Those of grid and thread loops are, and of loops of thread code that may become loops of the grid.  Other serial
    loops may have no iteration: that is no condition of the schedule.
    """
    sizes = {parameter.name for parameter in program.parameters if parameter.kind is ir.ParameterKind.PROGRAM}
    sizes -= {parameter.name for parameter in program.parameters if parameter.of_serial_loop}
    sizes |= {derived.name for derived in program.derived}
    for loop in program.grid:
        yield loop.extent, True
    for stmt in ir.walk_statements(program.body):
        if not isinstance(stmt, ir.Phase):
            continue
        for thread in stmt.threads:
            yield thread.extent, True
        for inner in ir.walk_statements(stmt.body):
            view = counted_loop(inner) if isinstance(inner, ir.For) else None
            if view is not None and isinstance(inner, ir.For):
                joins = _is_granularity(view, inner.body)
                yield from ((one, joins and _names(one) <= sizes) for one in view.spans())


def _is_granularity(view: CountedLoop, body: tuple[ir.Stmt, ...]) -> bool:
    """Say whether a loop from 0 by ones only updates elements that its variable takes part in, and no scalar."""
    if view.down or not view.unit or view.first != ir.IntConst(0) or len(view.conditions) != 1 or view.others:
        return False
    own = {view.variable.name}
    targets: list[ir.Element] = []
    for stmt in ir.walk_statements(body):
        if isinstance(stmt, ir.Declare):
            own.add(stmt.name)
        elif isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element):
            targets.append(stmt.target)
        elif isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Var) and stmt.target.name not in own:
            return False
    return bool(targets) and all(own & {name for index in one.indices for name in _names(index)} for one in targets)


def _names(expr: ir.Expr) -> set[str]:
    return {part.name for part in ir.walk_expression(expr) if isinstance(part, ir.Var)}


def _divisions(program: ir.Program) -> Iterator[ir.Expr]:
    """Yield the quotients and remainders of extents, bounds, indices and integer scalars.

    Those of conditions are left to whoever reads the condition: they need no symbol where only their truth counts.
    """

    def inside(expr: ir.Expr) -> Iterator[ir.Expr]:
        for part in reversed(tuple(ir.walk_expression(expr))):
            if isinstance(part, ir.Binary) and part.op in ("/", "%") and part.type.integer:
                yield part

    for array in program.arrays:
        for extent in array.extents:
            yield from inside(extent)
    for loop in program.grid:
        yield from inside(loop.extent)
    for stmt in ir.walk_statements(program.body):
        if isinstance(stmt, ir.If | ir.While):
            continue
        for expr in ir.expressions_of(stmt):
            yield from inside(expr)
