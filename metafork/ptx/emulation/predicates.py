"""Predicates on paths: what assumptions decide, what they exclude, and how a condition differs between lanes.

A predicate is a sum in the Boolean ring over comparisons and conjunctions, so an assumed one often fixes atoms by mere
substitution; Z3 is asked only about integers that an earlier assumption speaks of (section 4.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from metafork.ptx.emulation.solver import Prover, Verdict
from metafork.ptx.emulation.states import State
from metafork.ptx.emulation.terms import Atom, Poly, Terms


class Flow(IntEnum):
    """How a branch condition differs between the lanes of a warp; greater is worse."""

    UNIFORM = 0
    BOUND = 1
    """An order comparison linear in the thread index, ``i < n``: true for whole warps but for the last."""
    CUT = 2
    """A comparison of products too long to expand (``MAXIMAL_TERMS``): not known, and taken to split warps."""
    DIVERGENT = 3


class Predicates:
    """Reasons about the predicates of one kernel."""

    def __init__(self, terms: Terms, prover: Prover) -> None:
        self.terms = terms
        self.prover = prover
        self._flows: dict[int, Flow] = {}

    def excluded(self, condition: Poly, state: State) -> bool:
        """Tell whether the path's assumptions exclude a condition; only a proof says so."""
        related = self._related(condition, state)
        return bool(related) and self.prover.feasible((*related, condition)) is Verdict.NO

    def assume(self, condition: Poly, state: State) -> None:
        """Add a condition to the assumptions of a state's path."""
        state.facts = (*state.facts, condition)
        self.learn(condition, state)

    def _related(self, condition: Poly, state: State) -> list[Poly]:
        """Return the assumptions that could exclude a condition: those over its own integers, else any that touch it.

        Leaving assumptions out is sound, and products that a guard brings in make the question hard.
        """
        own = self.terms.leaves(condition)
        leaves = [(fact, self.terms.leaves(fact)) for fact in state.facts]
        return [fact for fact, theirs in leaves if theirs and theirs <= own] or [
            f for f, theirs in leaves if theirs & own
        ]

    def learn(self, condition: Poly, state: State) -> None:
        """Note the atoms that a true condition determines."""
        parts = self.terms.conjuncts(condition)
        for part in parts:
            if len(part.terms) == 1:
                state.known[part.terms[0][0][0]] = part.constant == 0
        if len(parts) > 1:
            state.known[condition.terms[0][0][0]] = True

    def reduce(self, predicate: Poly, state: State) -> Poly:
        """Return a predicate under the atoms that the path's assumptions determine."""
        return self._substitute(predicate, state.known, {}) if state.known else predicate

    def _substitute(self, predicate: Poly, known: Mapping[int, bool], done: dict[int, Poly]) -> Poly:
        total = self.terms.constant(1, predicate.constant)
        for monomial, coefficient in predicate.terms:
            number = monomial[0]
            if number not in done:
                done[number] = Poly(1, 0, ((monomial, coefficient),))
                if number in known:
                    done[number] = self.terms.constant(1, int(known[number]))
                elif self.terms.atoms[number].kind == "all":
                    parts = self.terms.conjuncts(done[number])
                    done[number] = self.terms.conjunction([self._substitute(part, known, done) for part in parts])
            total = self.terms.add(total, done[number])
        return total

    def classify(self, predicate: Poly) -> Flow:
        """Return how a predicate differs between lanes."""
        return max((self._flow(number) for ((number,), _) in predicate.terms), default=Flow.UNIFORM)

    def _flow(self, number: int) -> Flow:
        known = self._flows.get(number)
        if known is None:
            atom = self.terms.atoms[number]
            inner = [argument for argument in atom.args if isinstance(argument, Poly)]
            if not atom.varies:
                known = Flow.UNIFORM
            elif atom.kind == "all":
                known = max(map(self.classify, inner))
            elif atom.kind in ("slt", "ult") and all(map(self.linear, inner)):
                known = Flow.BOUND
            else:
                known = Flow.CUT if any(map(self._cut, inner)) else Flow.DIVERGENT
            self._flows[number] = known
        return known

    def at_border(self, predicate: Poly) -> bool:
        """Tell whether a predicate holds for most lanes and fails at a border, or is the same in all."""
        if len(predicate.terms) != 1:
            return not predicate.terms
        number = predicate.terms[0][0][0]
        atom = self.terms.atoms[number]
        inner = [argument for argument in atom.args if isinstance(argument, Poly)]
        if not atom.varies:
            return True
        if atom.kind == "all":
            return all(self.at_border(part) or self.at_border(self.terms.negate(part)) for part in inner)
        if atom.kind == "eq":
            return bool(predicate.constant) and all(map(self.linear, inner))
        return self._flow(number) <= Flow.BOUND

    def _cut(self, poly: Poly) -> bool:
        """Tell whether the way a value differs between lanes is not known because a product was too long."""
        atoms = [self.terms.atoms[number] for monomial, _ in poly.terms for number in monomial]
        return any(atom.varies and atom.kind == "mul" for atom in atoms)

    def linear(self, poly: Poly) -> bool:
        """Tell whether a value is linear in the thread index, with coefficients that all lanes share."""
        for monomial, _ in poly.terms:
            varying = [self.terms.atoms[number] for number in monomial if self.terms.atoms[number].varies]
            if len(varying) > 1 or not all(map(self._is_index, varying)):
                return False
        return True

    def _is_index(self, atom: Atom) -> bool:
        inner = atom.args[0]
        extended = atom.kind in ("sext", "zext") and isinstance(inner, Poly) and self.linear(inner)
        return extended or atom.kind in ("sreg", "wide")
