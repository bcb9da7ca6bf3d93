"""promote: an element that a loop of a thread updates again and again is kept in a scalar meanwhile.

Where the element depends on the loops inside, these are interchanged first::

    for (int z = 0; z < B; z++)                for (int w = 0; w < s; w++) {
      for (int w = 0; w < s; w++)                float c_w = c[q + w];
        c[q + w] += a[z] * b[z][w];              for (int z = 0; z < B; z++)
                                                   c_w += a[z] * b[z][w];
                                                 c[q + w] = c_w;
                                               }

After Callahan, Carr and Kennedy, "Improving register allocation for subscripted variables" (PLDI 1990).  Only arrays in
global memory are looked at; those that a block holds in shared memory, and elements that a thread holds in registers
for its whole life, are near already.

Legality.  *Scalar*: in the loop the array is accessed by one index only, which no iteration changes; some iteration
runs, and each writes the element, so that nothing is loaded or stored that was not before.  Arrays do not overlap (the
dispatcher sees to that), and no other thread may touch the element in the same phase, for that would be a race.
*Interchange*: the loops' bounds do not depend on each other; what the inner body writes are its own scalars, and
elements whose one index does not depend on the outer variable and is another for all values of the inner ones.  So each
element sees its updates in the same order as before, and results are the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.analyses import Analyses
from metafork.analysis.counted_loops import counted_loop
from metafork.analysis.memory.block_memory import UnknownSizeError, block_memory
from metafork.analysis.values.conditions import meaning
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.atomic_updates import atomic_arrays
from metafork.ir.rewriting import (
    arrays_read,
    assigned_variables,
    fresh_name,
    map_body,
    names_of,
    substitute,
    variables,
)
from metafork.ir.visitor import Body, Rewriter
from metafork.transform.directive import Refused


class Promote(Struct, frozen=True):
    """Keep elements of some arrays in scalars while a loop of a thread updates them.

    promote(y)::

        for (int k = 0; k < n; k++)                float y_kept = y[p];
          y[p] += a[p][k] * x[k];            -->   for (int k = 0; k < n; k++)
                                                     y_kept += a[p][k] * x[k];
                                                   y[p] = y_kept;
    """

    arrays: tuple[str, ...]

    def apply(self, program: ir.Program, analyses: Analyses) -> ir.Program | Refused:
        """Return the program with scalars, or that no loop updates one element of an array."""
        try:
            promotion = analyses.of(promotion_of, program)
            if not promotion.kept <= {*self.arrays}:
                promotion = promotion_of(program, analyses, self.arrays)
        except UnknownSizeError as unknown:
            return Refused(str(unknown), program.span)
        for name in self.arrays:
            if name not in promotion.kept:
                why = next((one for one in promotion.findings if one.array == name), None)
                reason = f"no loop of a thread updates one element of `{name}` in global memory"
                return Refused(reason, program.span) if why is None else Refused(why.reason, why.access.span)
        return promotion.program


class Finding(Struct, frozen=True):
    """That an array is ``kept`` in a scalar while a loop updates it, or that it is not, and why."""

    array: str
    kept: bool
    reason: str
    access: ir.Element


class Promotion(Struct, frozen=True):
    """A program with scalars, and what was found of its arrays."""

    program: ir.Program
    findings: tuple[Finding, ...]

    @property
    def kept(self) -> frozenset[str]:
        """The arrays with scalars."""
        return frozenset(one.array for one in self.findings if one.kept)


def promotion_of(program: ir.Program, analyses: Analyses, arrays: tuple[str, ...] | None = None) -> Promotion:
    """Return a program with scalars for elements of some arrays, or of all; raises ``UnknownSizeError``."""
    rewriter = _Keeping.of(program, analyses, arrays)
    body = rewriter.body(program.body)
    return Promotion(replace(program, body=body), (*rewriter.kept, *rewriter.missed))


class _Counted(Struct, frozen=True):
    """A counted loop: it runs at all where ``condition`` holds of ``low``, and goes on as ``bounds`` say."""

    var: str
    low: ir.Expr
    condition: ir.Expr
    step: ir.Expr

    @property
    def bounds(self) -> tuple[ir.Expr, ...]:
        """What the iterations depend on."""
        return self.low, self.condition, self.step

    @property
    def reads(self) -> frozenset[str]:
        """The scalars that the iterations depend on."""
        return frozenset().union(*(variables(bound) for bound in self.bounds)) - {self.var}

    @property
    def runs(self) -> ir.Expr:
        """Whether it runs at all."""
        return substitute(self.condition, {self.var: self.low})


class _Keeping(Rewriter):
    """Rewrites one program; ``arrays`` are those looked at, ``kept`` and ``missed`` say what was done and what not."""

    scope: Scope

    def __init__(self, scope: Scope, prover: Prover, arrays: Set[str], taken: set[str]) -> None:
        self.scope = scope
        self.prover = prover
        self.arrays = arrays
        self.taken = taken
        self.kept: list[Finding] = []
        self.missed: list[Finding] = []
        self._in_phase = False

    @staticmethod
    def of(program: ir.Program, analyses: Analyses, arrays: tuple[str, ...] | None) -> _Keeping:
        memory = block_memory(program, analyses)
        near = {*program.mapping.cached, *program.mapping.transposed}
        near |= {window.array.name for path in memory.paths for window in path.private}
        near |= atomic_arrays(program.body)  # other threads update them meanwhile
        scope = Scope.of(memory.facts)
        for stmt in ir.walk_statements(program.body):
            if isinstance(stmt, ir.Declare):  # what hides a parameter is not known
                scope.values.pop(stmt.name, None)
        return _Keeping(
            scope,
            analyses.prover(memory.facts.constraints, memory.facts.derived),
            {one.name for one in program.arrays if one.name not in near and (arrays is None or one.name in arrays)},
            set(names_of(program)),
        )

    def phase(self, node: ir.Phase) -> ir.Stmt | Body:
        self._in_phase = True
        new = super().phase(node)
        self._in_phase = False
        return new

    def loop(self, node: ir.For) -> ir.Stmt | Body:
        kept = self._kept(node) or self._interchanged(node) if self._in_phase else None
        return super().loop(node) if kept is None else tuple(kept)

    # Scalars.

    def _kept(self, loop: ir.For) -> list[ir.Stmt] | None:
        """Return the loop with scalars for the elements that it updates, ``None`` where there are none."""
        counted = _counted(loop)
        if counted is None or any(
            isinstance(stmt, ir.Break | ir.Continue | ir.While) for stmt in ir.walk_statements(loop.body)
        ):
            return None
        if any(arrays_read(bound) for bound in counted.bounds):
            return None
        before: list[ir.Stmt] = []
        after: list[ir.Stmt] = []
        body = loop.body
        inside = _changed(loop.body) | {counted.var}
        for array in sorted(_written(loop.body) & self.arrays):
            place = _one_place(loop.body, array, inside)
            if place is None:
                continue
            if not self._surely_writes(loop.body, array):
                reason = f"an iteration of the loop over {counted.var} may not write {array}"
                self.missed.append(Finding(array, False, reason, place))
                continue
            scalar = ir.Var(self._fresh(f"{array}_kept"), place.type)
            before.append(ir.Declare(scalar.name, scalar.type, place))
            body = map_body(body, partial(_in_scalar, array, scalar))
            after.append(ir.Assign(place, "", scalar))
            reason = f"the loop over {counted.var} updates {array} in a scalar"
            self.kept.append(Finding(array, True, reason, place))
        if not after:
            return None
        code: list[ir.Stmt] = [*before, replace(loop, body=self.body(body)), *after]
        if self._runs(counted):
            return code
        return [ir.If(counted.runs, tuple(code))]

    def _surely_writes(self, body: Body, array: str) -> bool:
        """Say whether every run of a body writes an element of the array."""
        for stmt in body:
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element) and stmt.target.array == array:
                return True
            if isinstance(stmt, ir.For):
                counted = _counted(stmt)
                if counted is not None and self._runs(counted) and self._surely_writes(stmt.body, array):
                    return True
        return False

    def _runs(self, counted: _Counted) -> bool:
        """Say whether a loop is proved to run at least once."""
        constraints = meaning(self.scope, counted.runs).conjunction
        return constraints is not None and bool(self.prover.proves(constraints))

    def _fresh(self, name: str) -> str:
        found = fresh_name(name, self.taken)
        self.taken.add(found)
        return found

    # Interchange.

    def _interchanged(self, loop: ir.For) -> list[ir.Stmt] | None:
        """Return a loop and those in it interchanged where the innermost one then updates an element in a scalar."""
        outer = _counted(loop)
        if outer is None or not isinstance(loop.init, ir.Declare):
            return None
        pure: list[ir.Declare] = []
        nested: list[tuple[ir.For, _Counted]] = []
        body = loop.body
        while body and isinstance(body[-1], ir.For):
            *declarations, last = body
            assert isinstance(last, ir.For)
            counted = _counted(last)
            own = [stmt for stmt in declarations if isinstance(stmt, ir.Declare) and stmt.value is not None]
            if counted is None or not isinstance(last.init, ir.Declare) or len(own) < len(declarations):
                return None
            pure += own
            # A name means the variable of an inner loop only from there on.
            if any(counted.var in variables(value) for value in _values(pure)):
                return None
            nested.append((last, counted))
            body = last.body
        if not nested or any(arrays_read(e) for stmt in pure for e in ir.expressions_of(stmt)):
            return None
        if not self._independent(outer, [counted for _, counted in nested], pure, body):
            return None
        done = len(self.kept)
        kept = self._kept(replace(loop, body=(*pure, *body)))
        if kept is None:
            return None
        *names, last_name = outer.var, *(counted.var for _, counted in nested)
        how = f"after the loops over {', '.join(names)} and {last_name} were interchanged"
        self.kept[done:] = [replace(one, reason=f"{one.reason}, {how}") for one in self.kept[done:]]
        for inner, _ in reversed(nested):
            kept = [replace(inner, body=tuple(kept))]
        return kept

    def _independent(self, outer: _Counted, inner: Sequence[_Counted], pure: Sequence[ir.Declare], body: Body) -> bool:
        """Say whether a loop may become the innermost of a nest; the declarations go with it."""
        first = {outer.var, *(stmt.name for stmt in pure)}
        names = {one.var for one in inner}
        bounds = [bound for one in inner for bound in one.bounds]
        inner_reads = frozenset[str]().union(*(one.reads for one in inner))
        if len(names) < len(inner) or first & (inner_reads | names) or names & outer.reads:
            return False
        declared = [stmt.name for stmt in (*pure, *body) if isinstance(stmt, ir.Declare)]
        if len(set(declared)) < len(declared):
            return False
        if any(arrays_read(bound) for bound in (*outer.bounds, *bounds)):
            return False
        if not all(isinstance(stmt, ir.Declare | ir.Assign) for stmt in body):
            return False
        whole = (*pure, *body)
        if not assigned_variables(body) <= {stmt.name for stmt in body if isinstance(stmt, ir.Declare)}:
            return False
        inside = _changed(whole) | {outer.var}
        for array in _written(body):
            place = _one_place(whole, array, inside)
            if place is None or not self._differ(place, inner):
                return False
        return True

    def _differ(self, place: ir.Element, loops: Sequence[_Counted]) -> bool:
        """Say whether an element is proved to be another in all iterations of a nest: each loop has its own index."""
        for loop in loops:
            others = {other.var for other in loops if other is not loop}
            own = replace(place, indices=tuple(index for index in place.indices if not variables(index) & others))
            if not self._differs(own, loop):
                return False
        return True

    def _differs(self, place: ir.Element, loop: _Counted) -> bool:
        """Say whether an element is proved to be another in every iteration of a loop, all else alike."""
        scope = self.scope.copy()
        for index in place.indices:
            # Only what the variable is multiplied with must be known.
            for name in variables(index) - scope.values.keys():
                scope.values[name] = Polynomial.symbol(name)
            value = scope.congruent(index)
            factor = None if value is None else value.coefficient(loop.var)
            if factor is None or not factor.symbols <= self.scope.constants:
                continue
            steps = [step for step in (factor, -factor) if self.prover.proves(at_most(ONE, step))]
            if steps and (index.type.signed or self._stays_short(steps[0], loop, index)):
                return True
        return False

    def _stays_short(self, step: Polynomial, loop: _Counted, index: ir.Expr) -> bool:
        """Say whether a whole loop takes an index of unsigned type less far than once through that type's values."""
        match loop.condition:
            case ir.Binary(op="<" | "<=", left=ir.Var(name=name), right=limit) if name == loop.var:
                sides = self.scope.compared(loop.low, limit)
            case _:
                return False
        if sides is None or not all(side.symbols <= self.scope.constants for side in sides):
            return False
        return self.scope.bounded(step * (sides[1] - sides[0] + ONE), None, index.type.greatest)


def _counted(loop: ir.For) -> _Counted | None:
    view = counted_loop(loop)
    if view is None or view.others or loop.condition is None:
        return None
    type_, low = view.variable.type, view.first
    if isinstance(low, ir.IntConst) and not type_.signed and 0 <= low.value <= type_.greatest:
        low = ir.IntConst(low.value, type_)
    alike = low.type is type_ or (isinstance(low, ir.IntConst) and type_.signed)
    counted = _Counted(view.variable.name, low, loop.condition, view.step)
    return counted if alike and not counted.reads & _changed(loop.body) else None


def _changed(body: Body) -> frozenset[str]:
    """Return the scalars that a body declares or assigns, those of loops inside it too."""
    declared = {stmt.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Declare)}
    return frozenset(declared) | assigned_variables(body)


def _written(body: Body) -> set[str]:
    targets = [stmt.target for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Assign)]
    return {target.array for target in targets if isinstance(target, ir.Element)}


def _values(declarations: Sequence[ir.Declare]) -> list[ir.Expr]:
    return [stmt.value for stmt in declarations if stmt.value is not None]


def _one_place(body: Body, array: str, inside: frozenset[str]) -> ir.Element | None:
    """Return the one element of an array that a body accesses, in terms of scalars that are not ``inside``.

    ``None`` where there may be several, or the index needs memory or what the body changes.
    """
    names = [stmt.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Declare)]
    assigned = assigned_variables(body)
    known: dict[str, ir.Expr] = {}
    seen: set[str] = set()
    for stmt in body:
        if isinstance(stmt, ir.Declare) and stmt.name in seen:
            return None  # above its declaration the name means something else
        seen |= {
            name for one in ir.walk_statements((stmt,)) for expr in ir.expressions_of(one) for name in variables(expr)
        }
        if isinstance(stmt, ir.Declare) and stmt.value is not None and stmt.type.integer:
            value = substitute(stmt.value, known)
            if names.count(stmt.name) == 1 and stmt.name not in assigned and stmt.value.type is stmt.type:
                known[stmt.name] = value
    places = {
        substitute(part, known) for part in ir.parts_of(body) if isinstance(part, ir.Element) and part.array == array
    }
    if len(places) != 1:
        return None
    (place,) = places
    assert isinstance(place, ir.Element)
    if any(arrays_read(index) or variables(index) & inside for index in place.indices):
        return None
    return place


def _in_scalar(array: str, scalar: ir.Var, part: ir.Expr) -> ir.Expr | None:
    return scalar if isinstance(part, ir.Element) and part.array == array else None
