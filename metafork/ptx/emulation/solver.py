"""Z3 for what normal forms cannot decide; every answer has three values, and *unknown* is never a yes.

Uninterpreted loads, loop symbols and unknown operations become free variables.  A second *lane* of the warp is a second
copy of everything that varies between lanes, with %tid.x moved by a bounded number and the same %tid.y and
%tid.z.  Effort is bounded by Z3's deterministic resource count, not by time, and by a number of questions per kernel.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from metafork.ptx.emulation.terms import Monomial, Poly, Terms
from metafork.ptx.emulation.traces import LANES, LoadRecord, Store

RESOURCES = 150_000
"""Z3's ``rlimit`` of one proof, some tens of milliseconds."""

PRUNING_RESOURCES = 20_000
"""Z3's ``rlimit`` of one question whether a path can be taken: a path too many costs little."""


TIMEOUT_MS = 60_000
"""The time that no question outlasts; the resources end it long before, on every machine alike."""


class Verdict(Enum):
    """The answer to a question."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Prover:
    """Answers questions about the values of one term table, at most ``proofs`` and ``prunings`` of them."""

    def __init__(self, terms: Terms, proofs: int = 24, prunings: int = 32) -> None:
        self.terms = terms
        self.proofs = proofs
        self.prunings = prunings
        self.asked = 0
        self.paused = False
        self._feasible: dict[frozenset[Poly], Verdict] = {}
        self._encoded: dict[tuple[int, int], Any] = {}
        self._constraints: list[Any] = []
        self._lanes: Any = None

    def same(self, source: Poly, lanes: int, target: Poly, facts: Sequence[Poly]) -> Verdict:
        """Is the address ``source`` of the lane ``lanes`` further always ``target`` of this lane?

        The answer is NO with a counterexample in free variables, which may be no real execution.
        """
        moved = self.terms.shift(source, lanes)
        z3 = _z3()
        return self._always(facts, lambda: z3.simplify(self._value(moved, 0) == self._value(target, 0)))

    def disjoint(self, store: Store, record: LoadRecord, facts: Sequence[Poly]) -> Verdict:
        """Is the store, of this or any lane of the row, always outside the bytes of the load?"""

        def claim() -> Any:
            z3 = _z3()
            # The store is lane 1's, %tid.x moved by up to a warp; lane 0 loads.
            distance = self._value(store.address, 1) - self._value(record.address, 0)
            return z3.And(z3.UGE(distance, record.size), z3.ULE(distance, (1 << 64) - store.size))

        return self._always(facts, claim, both_lanes=True)

    def feasible(self, facts: Sequence[Poly]) -> Verdict:
        """Can all the facts hold together?"""
        key = frozenset(facts)
        if key not in self._feasible:
            if self.paused or self.prunings <= 0:
                return Verdict.UNKNOWN
            self.prunings -= 1
            answer = self._ask(facts, lambda: _z3().BoolVal(False), PRUNING_RESOURCES, both_lanes=False)
            self._feasible[key] = {Verdict.YES: Verdict.NO, Verdict.NO: Verdict.YES}.get(answer, Verdict.UNKNOWN)
        return self._feasible[key]

    def _always(self, facts: Sequence[Poly], claim: Callable[[], Any], *, both_lanes: bool = False) -> Verdict:
        if self.paused or self.proofs <= 0:
            return Verdict.UNKNOWN
        self.proofs -= 1
        return self._ask(facts, claim, RESOURCES, both_lanes=both_lanes)

    def _ask(self, facts: Sequence[Poly], claim: Callable[[], Any], resources: int, *, both_lanes: bool) -> Verdict:
        self.asked += 1
        z3 = _z3()
        goal = claim()
        assumptions = [self._value(fact, lane) == 1 for fact in facts for lane in ((0, 1) if both_lanes else (0,))]
        solver = z3.SolverFor("QF_BV")
        solver.set("rlimit", resources)
        solver.set("timeout", TIMEOUT_MS)
        solver.set("ctrl_c", False)  # Z3 would take an interrupt as the end of this question, and the run would go on
        solver.add(*self._constraints, *assumptions, z3.Not(goal))
        answer = solver.check()
        if answer == z3.unsat:
            return Verdict.YES
        return Verdict.NO if answer == z3.sat else Verdict.UNKNOWN

    # --- encoding -----------------------------------------------------------------------------------------------

    def _value(self, poly: Poly, lane: int) -> Any:
        z3 = _z3()
        total = z3.BitVecVal(poly.constant, poly.width)
        for monomial, coefficient in poly.terms:
            factor = self._atom(monomial[0], lane) if len(monomial) == 1 else self._product(monomial, poly.width, lane)
            total = total + (factor if coefficient == 1 else factor * z3.BitVecVal(coefficient, poly.width))
        return total

    def _product(self, monomial: Monomial, width: int, lane: int) -> Any:
        """A product of atoms: a free variable, for multipliers are hard.

        What holds for all values of the variable holds for the product.
        """
        z3 = _z3()
        if not any(self.terms.atoms[number].varies for number in monomial):
            lane = 0
        return z3.BitVec(f"product{monomial}.{lane}", width)

    def _atom(self, number: int, lane: int) -> Any:
        if not self.terms.atoms[number].varies:
            lane = 0
        key = (number, lane)
        if key not in self._encoded:
            self._encoded[key] = self._encode(number, lane)
        return self._encoded[key]

    def _special(self, name: str, lane: int) -> Any:
        """The 32-bit value of a bounded special register."""
        z3 = _z3()
        if lane and name in ("%tid.x", "%laneid"):
            if self._lanes is None:
                self._lanes = z3.BitVec("lanes", 32)
                self._constraints.append(z3.And(self._lanes > -LANES, self._lanes < LANES))
            value = self._special(name, 0) + self._lanes
        else:
            value = z3.BitVec(name, 32)
        self._constraints.append(z3.ULE(value, self.terms.limits[name]))
        if name.startswith("%tid"):
            self._constraints.append(z3.ULT(value, z3.BitVec(name.replace("%tid", "%ntid"), 32)))
        return value

    def _encode(self, number: int, lane: int) -> Any:
        z3 = _z3()
        atom = self.terms.atoms[number]
        first = atom.args[0] if atom.args else None
        if atom.kind in ("sreg", "wide") and isinstance(first, str):
            value = self._special(first, lane)
            if atom.width > 32:
                return z3.ZeroExt(atom.width - 32, value)
            return z3.Extract(atom.width - 1, 0, value) if atom.width < 32 else value
        operands = [self._value(a, lane) for a in atom.args if isinstance(a, Poly)]
        if operands:
            built = self._operation(atom.kind, atom.width, operands)
            if built is not None:
                return built
        return z3.BitVec(f"atom{number}.{lane}", atom.width)

    def _operation(self, kind: str, width: int, operands: list[Any]) -> Any:
        z3 = _z3()
        first = operands[0]
        size = first.size()
        if kind in ("sext", "zext"):
            return (z3.SignExt if kind == "sext" else z3.ZeroExt)(width - size, first)
        if kind == "trunc":
            return z3.Extract(width - 1, 0, first)
        if kind == "all":
            return functools.reduce(operator.and_, operands)
        if len(operands) == 3 and kind == "select":
            return z3.If(first == 1, operands[1], operands[2])
        if len(operands) != 2:
            return None
        second = operands[1]
        if kind in ("shl", "lshr", "ashr"):
            if size < second.size():
                return None
            amount = z3.ZeroExt(size - second.size(), second) if size > second.size() else second
            return {"shl": first << amount, "lshr": z3.LShR(first, amount), "ashr": first >> amount}[kind]
        if second.size() != size:
            return None
        if kind[1:] in ("div", "rem") and not (z3.is_bv_value(second) and second.as_long()):
            return None  # PTX leaves division by zero open
        one, zero = z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)
        table = {
            "and": lambda: first & second, "or": lambda: first | second, "xor": lambda: first ^ second,
            "mul": lambda: first * second, "urem": lambda: z3.URem(first, second),
            "eq": lambda: z3.If(first == second, one, zero), "slt": lambda: z3.If(first < second, one, zero),
            "ult": lambda: z3.If(z3.ULT(first, second), one, zero),
            "umin": lambda: z3.If(z3.ULT(first, second), first, second),
            "umax": lambda: z3.If(z3.ULT(first, second), second, first),
            "smin": lambda: z3.If(first < second, first, second),
            "smax": lambda: z3.If(first < second, second, first),
            "udiv": lambda: z3.UDiv(first, second), "sdiv": lambda: first / second,
            "srem": lambda: z3.SRem(first, second),
        }  # fmt: skip
        return table[kind]() if kind in table else None


def _z3() -> Any:
    """Import Z3 when the first question is asked: many kernels ask none."""
    import z3

    return z3
