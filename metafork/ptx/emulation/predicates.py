"""Predicates on paths: what assumptions decide, what they exclude, and how a condition differs between lanes.

A predicate is a polynomial of the Boolean ring over comparison atoms, so an assumed one often fixes atoms by mere
substitution; Z3 is asked only about integers that an earlier assumption speaks of (section 4.2).
"""

from __future__ import annotations

from enum import IntEnum

from metafork.ptx.emulation.solver import Prover, Verdict
from metafork.ptx.emulation.states import State
from metafork.ptx.emulation.terms import Poly, Terms


class Flow(IntEnum):
    """How a branch condition differs between the lanes of a warp; greater is worse."""

    UNIFORM = 0
    BOUND = 1
    """An order comparison linear in the thread index, ``i < n``: true for whole warps but for the last."""
    DIVERGENT = 2


class Predicates:
    """Reasons about the predicates of one kernel."""

    def __init__(self, terms: Terms, prover: Prover) -> None:
        self.terms = terms
        self.prover = prover

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
        atoms = {number for monomial, _ in condition.terms for number in monomial}
        if len(atoms) > 6:
            return
        for number in atoms:
            for value in (False, True):
                if self._substitute(condition, {number: value}) == self.terms.constant(1, 0):
                    state.known[number] = not value

    def reduce(self, predicate: Poly, state: State) -> Poly:
        """Return a predicate under the atoms that the path's assumptions determine."""
        if predicate.is_constant or not state.known:
            return predicate
        return self._substitute(predicate, state.known)

    def _substitute(self, predicate: Poly, known: dict[int, bool]) -> Poly:
        total = self.terms.constant(1, predicate.constant)
        for monomial, coefficient in predicate.terms:
            if any(known.get(number) is False for number in monomial):
                continue
            rest = tuple(number for number in monomial if number not in known)
            part = Poly(1, 0, ((rest, coefficient),)) if rest else self.terms.constant(1, 1)
            total = self.terms.add(total, part)
        return total

    def classify(self, predicate: Poly) -> Flow:
        """Return how a predicate differs between lanes."""
        flow = Flow.UNIFORM
        for monomial, _ in predicate.terms:
            for number in monomial:
                atom = self.terms.atoms[number]
                if not atom.varies:
                    continue
                bound = atom.kind in ("slt", "ult") and all(self._linear(a) for a in atom.args if isinstance(a, Poly))
                flow = max(flow, Flow.BOUND if bound else Flow.DIVERGENT)
        return flow

    def _linear(self, poly: Poly) -> bool:
        """Tell whether a value is linear in the thread index, with coefficients that all lanes share."""
        for monomial, _ in poly.terms:
            varying = [self.terms.atoms[number] for number in monomial if self.terms.atoms[number].varies]
            if len(varying) > 1 or any(atom.kind not in ("sreg", "wide") for atom in varying):
                return False
        return True

    # --- instructions -------------------------------------------------------------------------------------------
