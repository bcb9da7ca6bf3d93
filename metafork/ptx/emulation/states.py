"""The states of the emulator: what a flow knows at a point, and how flows become one where they join.

States with equal live registers become one (memoisation, section 4.2).  States that lanes of one warp can be in at the
same time, because they parted at a branch that differs between lanes, *must* become one, with an unknown in every
register in which they differ: the address in the neighbouring lane is found by moving %tid.x, and that lane may have
come another way.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from metafork.ptx.emulation.borders import Choice
from metafork.ptx.emulation.evaluate import Value
from metafork.ptx.emulation.terms import Poly, Terms
from metafork.ptx.emulation.traces import Trace

MOST_STATES = 8
"""More states than this at one join become one, with unknowns where they differ."""


class Decision(Struct, frozen=True):
    """A branch taken on a path: its block, which successor, whether all lanes of a warp decide alike, and when so.

    Lanes of the state before it decide so where the ``condition`` holds, which is ``None`` where that is not known.
    """

    block: int
    successor: int
    uniform: bool
    condition: Poly | None = None


class State(Struct):
    """One flow at one point; owned by the emulator.

    ``choices`` are, by position, the choices that the last execution of an instruction made (``borders``).
    """

    registers: dict[str, Value] = field(default_factory=dict)
    facts: tuple[Poly, ...] = ()
    known: dict[int, bool] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    epoch: int = 1
    path: tuple[Decision, ...] = ()
    choices: dict[int, Choice] = field(default_factory=dict)

    def fork(self) -> State:
        """Return an independent copy."""
        registers, known, choices = dict(self.registers), dict(self.known), dict(self.choices)
        return State(registers, self.facts, known, self.trace.copy(), self.epoch, self.path, choices)


class Joiner:
    """Joins states of one kernel; ``new_epoch`` gives versions of memory that no load has seen."""

    def __init__(self, terms: Terms, new_epoch: Callable[[], int]) -> None:
        self.terms = terms
        self.new_epoch = new_epoch
        self._serial = 0

    def join(self, block: int, live: frozenset[str], arrived: list[State]) -> list[State]:
        """Make the states that reach a block as few as is sound, see the module's head."""
        for state in arrived:
            if len(state.registers) > len(live):
                state.registers = {name: value for name, value in state.registers.items() if name in live}
        groups: list[list[State]] = []
        for state in arrived:
            together = [group for group in groups if any(_may_coexist(state, other) for other in group)]
            groups = [group for group in groups if group not in together]
            groups.append([state, *(other for group in together for other in group)])
        joined = [self._merge(block, group) for group in groups]
        distinct: list[list[State]] = []
        for state in joined:
            same = next((group for group in distinct if group[0].registers == state.registers), None)
            if same is None:
                distinct.append([state])
            else:
                same.append(state)
        result = [self._merge(block, group) for group in distinct]
        return result if len(result) <= MOST_STATES else [self._merge(block, result)]

    def _merge(self, block: int, states: list[State]) -> State:
        first = states[0]
        if len(states) == 1:
            return first
        others = states[1:]
        self._serial += 1
        registers: dict[str, Value] = {}
        for name, value in first.registers.items():
            values = [state.registers.get(name) for state in others]
            if all(other == value for other in values):
                registers[name] = value
            elif all(other is not None and other.poly == value.poly for other in values):
                registers[name] = Value(value.poly)
            elif all(other is not None for other in values):
                chosen = self._chosen(name, states, 0) if value.poly.width == 1 else None
                key = (block, self._serial, name)
                registers[name] = Value(chosen or self.terms.atom("phi", value.poly.width, key, varies=True))
        facts = tuple(fact for fact in first.facts if all(fact in state.facts for state in others))
        known = {n: v for n, v in first.known.items() if all(state.known.get(n) == v for state in others)}
        choices = {p: c for p, c in first.choices.items() if all(state.choices.get(p) == c for state in others)}
        trace = first.trace
        for state in others:
            trace.intersect(state.trace)
        epoch = first.epoch if all(state.epoch == first.epoch for state in others) else self.new_epoch()
        path = first.path
        for state in others:
            path = _common_prefix(path, state.path)
        return State(registers, facts, known, trace, epoch, path, choices)

    def _chosen(self, name: str, states: list[State], depth: int) -> Poly | None:
        """Return a predicate in terms of the decisions by which states parted, ``None`` where those do not say it.

        So nvcc makes a guard of several comparisons: it branches around the last of them.
        """
        values = {state.registers[name].poly for state in states}
        if len(values) == 1:
            return values.pop()
        while all(len(state.path) > depth and state.path[depth] == states[0].path[depth] for state in states):
            depth += 1
        if not all(len(state.path) > depth for state in states):
            return None
        decisions = {state.path[depth] for state in states}
        if len(decisions) != 2 or len({decision.block for decision in decisions}) != 1:
            return None
        condition = states[0].path[depth].condition
        here = [state for state in states if state.path[depth] == states[0].path[depth]]
        there = [state for state in states if state.path[depth] != states[0].path[depth]]
        others = there[0].path[depth].condition
        if condition is None or others is None or others != self.terms.negate(condition):
            return None
        one, other = self._chosen(name, here, depth + 1), self._chosen(name, there, depth + 1)
        return None if one is None or other is None else self._selected(condition, one, other)

    def _selected(self, condition: Poly, then: Poly, otherwise: Poly) -> Poly:
        """Return a predicate that is one of two, as a conjunction where one of them is constant."""
        terms = self.terms
        for which, one, other in ((condition, then, otherwise), (terms.negate(condition), otherwise, then)):
            if one.is_constant:
                if one.constant:
                    return terms.negate(terms.conjunction((terms.negate(which), terms.negate(other))))
                return terms.conjunction((terms.negate(which), other))
        return terms.add(terms.conjunction((condition, then)), terms.conjunction((terms.negate(condition), otherwise)))

    # --- blocks -------------------------------------------------------------------------------------------------


def _common_prefix(left: tuple[Decision, ...], right: tuple[Decision, ...]) -> tuple[Decision, ...]:
    length = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        length += 1
    return left[:length]


def _may_coexist(left: State, right: State) -> bool:
    """Tell whether two lanes of one warp can be in the two states: they did not part at a uniform branch."""
    for one, other in zip(left.path, right.path, strict=False):
        if one != other:
            return one.block != other.block or not (one.uniform and other.uniform)
    return True
