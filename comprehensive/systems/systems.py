"""Constraint systems of one case discussion: consistency, implication, irredundant display, integer witnesses.

A system is a path of the tree: a sequence of conditions on top of Start.  DESIGN section 6 says when a branch is kept:
its system has a real solution, and is not proved empty over the integers; *unknown* never drops a branch.  Four means
are tried in this order: a known integer point (``points``) proves consistency, signs of coefficients (``signs``) and
sums of conditions (``metafork.algebra.positivity``) prove emptiness, and Z3 (``solver``) decides the rest, over the
reals first and then over the integers.  Rounded quotients of machine symbols (of the counter ``occupancy``) are beyond
Z3, which takes a minute to say so: systems with such are not put to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most, equal
from metafork.algebra.positivity import Positivity, rooms
from metafork.algebra.prover import Verdict
from metafork.algebra.symbols import DerivedSymbol
from metafork.comprehensive.systems.points import Number, Points
from metafork.comprehensive.systems.signs import Signs, integral
from metafork.comprehensive.systems.start import Start

if TYPE_CHECKING:
    from metafork.comprehensive.systems.solver import PathSolver

System = tuple[Constraint, ...]


class Consistency(Struct, frozen=True):
    """Whether a system has a solution; ``witness`` is an integer point of a consistent one where one was found."""

    verdict: Verdict
    witness: dict[str, Number] | None = None

    @property
    def kept(self) -> bool:
        """Whether the branch stays in the tree: not proved empty."""
        return self.verdict is not Verdict.NO


class Systems:
    """Answers questions about systems over one Start.  Solvers are made when first needed.

    After ``deadline`` (of ``time.monotonic``) Z3 is not asked any more: what that leaves open is unknown.
    """

    def __init__(self, start: Start, deadline: float | None = None) -> None:
        self.start = start
        self._deadline = deadline
        self.derived: list[DerivedSymbol] = list(start.derived)
        self._background = list(start.constraints)
        real = start.real
        self._real = real
        self._signs = Signs(self._background, real)
        self._points = Points(
            self._background, start.derived, start.small_values(), start.unknown_machine, real, start.data
        )
        self._positivity: Positivity | None = None
        self._over_reals: PathSolver | None = None
        self._over_integers: PathSolver | None = None
        self._implied: dict[tuple[frozenset[Constraint], Constraint], Verdict] = {}

    @property
    def solver_calls(self) -> int:
        """How many questions Z3 was asked."""
        return sum(solver.calls for solver in (self._over_reals, self._over_integers) if solver is not None)

    @property
    def late(self) -> bool:
        """Whether the deadline left a question open."""
        return any(solver.late for solver in (self._over_reals, self._over_integers) if solver is not None)

    def define(self, symbol: DerivedSymbol) -> None:
        """Add a derived symbol: its defining constraints hold in every system from now on."""
        facts = symbol.constraints()
        if self._points.depends_on_machine(symbol):
            facts += self._consequences(symbol)  # Z3 will not find them
        self.derived.append(symbol)
        self._background += facts
        self._positivity = None
        self._signs.add(facts)
        self._points.define(symbol, facts)
        for solver in (self._over_reals, self._over_integers):
            if solver is not None and not self._points.on_machine(facts):
                solver.add(facts)

    def consistent(self, path: System, last: Constraint, known: dict[str, Number] | None = None) -> Consistency:
        """Say whether ``path`` with ``last`` has a solution; ``known`` is a point of ``path`` where one is at hand."""
        if last.difference.is_constant:
            return Consistency(Verdict.YES, known) if last.holds({}) else Consistency(Verdict.NO)
        if last in path:
            return Consistency(Verdict.YES, known)
        if known is not None and last.symbols <= known.keys() and last.holds(known):
            return Consistency(Verdict.YES, known)
        if self._signs.empty(path, last):
            return Consistency(Verdict.NO)
        point = self._points.find((*path, last))
        if point is not None:
            return Consistency(Verdict.YES, point)
        # To load Z3 takes longer than all of this.
        if self._over_reals is None or self._points.on_machine((*path, last)):
            if self._excluded(path, last):
                return Consistency(Verdict.NO)
            point = self._points.find_larger((*path, last))
            if point is not None:
                return Consistency(Verdict.YES, point)
        return self._by_solver((*path, last))

    def _excluded(self, path: System, last: Constraint) -> bool:
        """Say whether conditions of a path that are added up exclude ``last``, all symbols being non-negative."""
        if last.relation == "==" or not self._signs.non_negative(last.symbols):
            return False
        goal = integral(last).negated()
        slack = goal.room
        premises = [integral(one) for one in path if self._signs.non_negative(one.symbols)]
        known = self._known()
        return slack.whole and (known.follows_from(slack, rooms(premises)) or known.follows(slack, premises))

    def _known(self) -> Positivity:
        """Return what the facts say of the symbols that are non-negative integers."""
        if self._positivity is None:
            self._positivity = Positivity(*self._facts())
        return self._positivity

    def _facts(self) -> tuple[list[Constraint], list[DerivedSymbol]]:
        """Return the facts about non-negative integers alone, and the derived symbols of such."""
        facts = [fact for fact in self._background if self._signs.non_negative(fact.symbols)]
        quotients = [
            symbol
            for symbol in self.derived
            if all(self._signs.non_negative(operand.symbols) for operand in symbol.operands)
        ]
        return facts, quotients

    def consistent_at(self, values: Mapping[str, int], system: System) -> Consistency:
        """Say whether a system has a solution at which some parameters have given values."""
        point = self._points.find_with(values, system)
        if point is not None:
            return Consistency(Verdict.YES, point)
        numbers = {name: Polynomial.constant(value) for name, value in values.items()}
        for symbol in self.derived:
            operands = [operand.substitute(numbers) for operand in symbol.operands]
            if all(operand.is_constant for operand in operands):
                numbers[symbol.name] = Polynomial.constant(replace(symbol, operands=tuple(operands)).evaluate({}))
        placed = [constraint.substitute(numbers) for constraint in (*self._background, *system)]
        if any(one.difference.is_constant and not one.holds({}) for one in placed):
            return Consistency(Verdict.NO)
        own = [one for one in placed[len(self._background) :] if one.symbols]
        if any(self._signs.empty(own[:number], one) for number, one in enumerate(own)):
            return Consistency(Verdict.NO)
        equations = (equal(Polynomial.symbol(name), Polynomial.constant(value)) for name, value in values.items())
        return self._by_solver((*system, *equations))

    def has_solution(self) -> Consistency:
        """Say whether Start itself has a solution."""
        point = self._points.find(())
        return Consistency(Verdict.YES, point) if point is not None else self._by_solver(())

    def implies(self, system: System, goal: Constraint) -> Verdict:
        """Say whether Start and ``system`` imply ``goal`` over the integers (unknown where no proof was found)."""
        if goal.relation == "==":
            sides = (Constraint(goal.left, "<=", goal.right), Constraint(goal.right, "<=", goal.left))
            verdicts = {self.implies(system, side) for side in sides}
            for verdict in (Verdict.NO, Verdict.UNKNOWN):
                if verdict in verdicts:
                    return verdict
            return Verdict.YES
        key = (frozenset(system), goal)
        if key not in self._implied:
            answer = self.consistent(system, goal.negated())
            opposite = {Verdict.YES: Verdict.NO, Verdict.NO: Verdict.YES, Verdict.UNKNOWN: Verdict.UNKNOWN}
            verdict = opposite[answer.verdict]
            # A real solution that is no integer point refutes nothing over the integers.
            self._implied[key] = Verdict.UNKNOWN if verdict is Verdict.NO and answer.witness is None else verdict
        return self._implied[key]

    def _consequences(self, symbol: DerivedSymbol) -> System:
        """Return what follows from a symbol's definition: that it is positive, which others are no less or greater."""
        this, operands = Polynomial.symbol(symbol.name), symbol.operands
        if symbol.kind == "ceiling":
            return (at_most(ONE, this),) if self.at_most(ONE, operands[0]) else ()
        if symbol.kind != "minimum":
            return ()
        facts: System = (at_most(ZERO, this),) if all(self.at_most(ZERO, operand) for operand in operands) else ()
        for other in self.derived:
            if other.kind == "minimum":
                name = Polynomial.symbol(other.name)
                facts += (at_most(this, name),) if {*other.operands} <= {*operands} else ()
                facts += (at_most(name, this),) if {*operands} <= {*other.operands} else ()
        return facts

    def at_most(self, left: Polynomial, right: Polynomial) -> bool:
        """Say whether ``left <= right`` is shown everywhere, by ranges and sums of facts alone."""
        return self._known().non_negative(right - left)

    def irredundant(self, system: System) -> System:
        """Return the system without the members that the others imply (within Start), the oldest dropped first."""
        kept = list(dict.fromkeys(system))
        for member in tuple(kept):
            others = tuple(other for other in kept if other != member)
            if self.implies(others, member) is Verdict.YES:
                kept.remove(member)
        return tuple(kept)

    def joined(self, systems: tuple[System, ...]) -> tuple[System, ...]:
        """Return systems with the same union, two made one where that is possible; the first keeps its place.

        ``A and c`` with ``B and not c`` is ``A and B`` where the first implies B and the second implies A.
        """
        kept = list(systems)
        place = 0
        while place < len(kept):
            for number in range(place + 1, len(kept)):
                union = self._union(kept[place], kept[number])
                if union is not None:
                    kept[place] = union
                    del kept[number]
                    place = 0  # the new system may go with an earlier one
                    break
            else:
                place += 1
        return tuple(kept)

    def _union(self, first: System, second: System) -> System | None:
        """Return the union of two systems as one system, ``None`` where it is not shown to be one."""
        for member in first:
            if member.relation == "==" or member.negated() not in second:
                continue
            ours = tuple(other for other in first if other != member)
            theirs = tuple(other for other in second if other != member.negated())
            sides = ((first, theirs), (second, ours))
            if all(goal in side or self.implies(side, goal) is Verdict.YES for side, goals in sides for goal in goals):
                return self.irredundant((*ours, *theirs))
        return None

    def witness(self, system: System) -> dict[str, Number] | None:
        """Return an integer point of a system, small where that is easy; ``None`` where none was found."""
        point = self._points.find(system, smallest=True)
        return point if point is not None else self._by_solver(system).witness

    def _by_solver(self, system: System) -> Consistency:
        if self._points.on_machine(system):
            return Consistency(Verdict.UNKNOWN)
        from metafork.comprehensive.systems.solver import as_integers

        if self._over_reals is None:
            self._over_reals = self._solver(integers=False)
        real_answer = self._over_reals.check(system)
        if real_answer == "unsat":
            return Consistency(Verdict.NO)
        if self._over_integers is None:
            self._over_integers = self._solver(integers=True)
        answer = self._over_integers.check(system)
        if answer == "unsat":
            return Consistency(Verdict.NO)
        if answer == "sat":
            model = as_integers(self._over_integers.model(), self._real)
            return Consistency(Verdict.YES, None if model is None else self._points.learn(model, system))
        # A real solution suffices to keep the branch; without an integer point it has no witness.
        return Consistency(Verdict.YES if real_answer == "sat" else Verdict.UNKNOWN)

    def _solver(self, integers: bool) -> PathSolver:
        from metafork.comprehensive.systems.solver import PathSolver  # points decide most systems

        facts = [fact for fact in self._background if not self._points.on_machine((fact,))]
        return PathSolver(facts, integers, self._real, deadline=self._deadline, beside=self._over_reals)
