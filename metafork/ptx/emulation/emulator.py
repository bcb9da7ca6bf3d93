"""Symbolic emulation of one kernel (PTXASW section 4): walks every flow once and leaves what each global load saw.

Flows fork at branches under assumptions; a predicate that the assumptions decide takes one way only.  Where flows
join, states with equal live registers become one (memoisation).  States that lanes of one warp can be in at the same
time (they parted at a branch that differs between lanes) *must* become one, with an unknown in every register in
which they differ: the address in the neighbouring lane is found by moving %tid.x, and that lane may have come another
way.  Loops are walked over symbols: a register whose every pass adds the same invariant step becomes
``start + step · k`` with the iteration number ``k`` (induction variable recognition), any other an unknown; ``k`` is
the same in all lanes only if no branch of the loop depends on the lane, or, for an outermost loop, those that do only
leave it.  Else it is either taken to be each lane's own, or the same under the condition that the code checks as it
runs (``check_passes``): then what the loads of the loop saw is marked (``LoadVisit.apart``).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from metafork.ptx.emulation.borders import Choice
from metafork.ptx.emulation.evaluate import Evaluator, Value
from metafork.ptx.emulation.execution import Executor, LoadVisit
from metafork.ptx.emulation.induction import LoopSummary, changed_registers, enter, header_symbols, summarize
from metafork.ptx.emulation.predicates import Flow
from metafork.ptx.emulation.states import Decision, Joiner, State
from metafork.ptx.emulation.terms import Poly, Terms
from metafork.ptx.emulation.traces import Trace
from metafork.ptx.text.cfg import Cfg, Loop
from metafork.ptx.text.graph import EXIT
from metafork.ptx.text.syntax import Instruction


class Unclear(Exception):  # noqa: N818  # it is a verdict on the kernel, not a fault
    """The kernel cannot be emulated; the message says why, and the kernel is left alone."""


class Branch(Struct, frozen=True):
    """A guarded branch that one flow came to: its block, the innermost loop walked (its header), and its condition."""

    block: int
    loop: int | None
    guard: Poly
    flow: Flow


class Emulation(Struct, frozen=True):
    """The result: visits of global loads, branches, the worst flow of each branching block, and the table of terms."""

    terms: Terms
    visits: tuple[LoadVisit, ...]
    branches: tuple[Branch, ...]
    flows: dict[int, Flow]
    questions: int


def emulate(
    cfg: Cfg, evaluator: Evaluator, *, reach: int = 31, budget: int = 400_000, check_passes: bool = False
) -> Emulation:
    """Emulate a kernel from its entry.

    Args:
        cfg: its control flow.
        evaluator: the meaning of its instructions; its terms are those of the result.
        reach: the largest |N| looked for.
        budget: the most instructions evaluated.
        check_passes: whether the lanes' passes of a loop may be compared as the kernel runs.

    Raises:
        Unclear: the control flow is irreducible, or the budget does not suffice.
    """
    if not cfg.reducible:
        raise Unclear("the control flow has a cycle with two entries")
    emulator = _Emulator(cfg, evaluator, reach, budget, check_passes)
    if cfg.blocks:
        emulator.region(None, 0, [State()])
    flows: dict[int, Flow] = {}
    for branch in emulator.branches:
        flows[branch.block] = max(branch.flow, flows.get(branch.block, Flow.UNIFORM))
    return Emulation(
        evaluator.terms, tuple(emulator.visits), tuple(emulator.branches), flows, emulator.executor.prover.asked
    )


class _Emulator:
    def __init__(self, cfg: Cfg, evaluator: Evaluator, reach: int, budget: int, check_passes: bool) -> None:
        self.cfg = cfg
        self.check_passes = check_passes
        self.evaluator = evaluator
        self.terms = evaluator.terms
        self.executor = Executor(cfg, evaluator, reach)
        self.predicates = self.executor.predicates
        self.joiner = Joiner(evaluator.terms, self.executor.new_epoch)
        self.budget = budget
        self.visits = self.executor.visits
        self.branches: list[Branch] = []
        self.walking: int | None = None
        self.summaries: dict[int, LoopSummary] = {}
        self.parting: set[int] = set()
        self.analysing = 0
        self.serial = 0

    def region(self, loop: Loop | None, start: int, states: list[State]) -> tuple[list[tuple[int, State]], list[State]]:
        """Walk the whole function or one pass of a loop; return the states that leave it and those that go round."""
        pending: dict[int, list[State]] = {start: states}
        leaving: list[tuple[int, State]] = []
        latches: list[State] = []
        for block in self.cfg.order:
            arrived = pending.pop(block, None)
            if arrived is None:
                continue
            for state in self.joiner.join(block, self.cfg.live[block], arrived):
                if block in self.cfg.loops and (loop is None or block != loop.header):
                    following = self.loop(self.cfg.loops[block], state)
                else:
                    following = self.block(block, state)
                for successor, after in following:
                    if successor == EXIT:
                        continue
                    if loop is not None and successor == loop.header:
                        latches.append(after)
                    elif loop is not None and successor not in loop.blocks:
                        leaving.append((successor, after))
                    else:
                        pending.setdefault(successor, []).append(after)
        return leaving, latches

    def loop(self, loop: Loop, before: State) -> list[tuple[int, State]]:
        """Walk a loop in its k-th pass; a second time if its branches show that k may differ between lanes."""
        summary = self.summary(loop)
        outer, self.walking = self.walking, loop.header
        entry = before.fork()
        entry.trace = Trace()
        entry.registers = {name: v for name, v in before.registers.items() if name in self.cfg.live[loop.header]}
        entry.choices = self._outside(loop, before)
        mark_visits, mark_branches = len(self.visits), len(self.branches)
        uniform = not self.analysing and loop.header not in self.parting
        while True:
            self.serial += 1
            iteration = self.terms.atom("loop", 64, (loop.header, self.serial), varies=not uniform)
            state = entry.fork()
            state.epoch = self.executor.new_epoch()
            state.registers = enter(self.evaluator, summary, entry.registers, iteration, self.serial)
            leaving, _ = self.region(loop, loop.header, [state])
            varying = [branch for branch in self.branches[mark_branches:] if branch.flow is not Flow.UNIFORM]
            if not uniform or not varying:
                break
            together = outer is None and all(self._leaves(loop, branch) for branch in varying)
            if together or self.check_passes:
                leaving = [(block, self._parted(after, entry, iteration)) for block, after in leaving]
                if not together:
                    self.visits[mark_visits:] = [replace(visit, apart=True) for visit in self.visits[mark_visits:]]
                break
            # Once found, for good: taking k to differ is always sound.
            self.parting.add(loop.header)
            uniform = False
            del self.visits[mark_visits:]
            del self.branches[mark_branches:]
        self.walking = outer
        for _, after in leaving:
            after.trace = Trace()
            after.choices = self._outside(loop, after)
        return leaving

    def _outside(self, loop: Loop, state: State) -> dict[int, Choice]:
        """Return the choices that a loop does not make anew."""
        blocks = [self.cfg.blocks[number] for number in loop.blocks]
        return {p: c for p, c in state.choices.items() if not any(block.start <= p < block.end for block in blocks)}

    def _leaves(self, loop: Loop, branch: Branch) -> bool:
        """Tell whether a branch of an outermost loop only decides to leave it.

        Lanes of a whole warp are then in the same pass: the first that leaves is missing from then on.
        """
        inside = [successor for successor in self.cfg.blocks[branch.block].successors if successor in loop.blocks]
        return branch.loop == loop.header and len(inside) <= 1

    def _parted(self, after: State, entry: State, iteration: Poly) -> State:
        """Return the state behind a loop that lanes leave in different passes: its last pass is each lane's own."""
        self.serial += 1
        own = self.terms.atom("loop", 64, (self.walking or 0, self.serial), varies=True)
        values = {iteration.terms[0][0][0]: own}
        registers = {
            name: Value(
                self.terms.substitute(value.poly, values, {}),
                None if value.image is None else self.terms.substitute(value.image, values, {}),
            )
            for name, value in after.registers.items()
        }
        # Decisions that lanes made alike in one pass are no reason that they came here alike.
        return replace(after, registers=registers, facts=entry.facts, known=dict(entry.known), path=entry.path)

    def summary(self, loop: Loop) -> LoopSummary:
        """Return the loop's induction variables, found by one walk over symbols at the first call."""
        known = self.summaries.get(loop.header)
        if known is not None:
            return known
        mark_visits, mark_branches = len(self.visits), len(self.branches)
        symbols = header_symbols(self.terms, self.evaluator.widths, loop, self.cfg.live[loop.header])
        state = State({name: Value(symbol) for name, symbol in symbols.items()})
        oldest = state.epoch = self.executor.new_epoch()
        self.analysing += 1
        paused, self.executor.prover.paused = self.executor.prover.paused, True
        _, latches = self.region(loop, loop.header, [state])
        self.executor.prover.paused = paused
        self.analysing -= 1
        del self.visits[mark_visits:]
        del self.branches[mark_branches:]
        summary = summarize(self.terms, symbols, changed_registers(self.cfg, loop), latches, oldest)
        self.summaries[loop.header] = summary
        return summary

    def block(self, number: int, state: State) -> list[tuple[int, State]]:
        """Execute one block; return its successors with their states."""
        block = self.cfg.blocks[number]
        instructions = self.cfg.body.instructions
        self.budget -= block.end - block.start
        if self.budget < 0:
            raise Unclear("the kernel has too many flows to emulate")
        for position in range(block.start, block.end):
            self.executor.execute(position, instructions[position], state)
        last = instructions[block.end - 1]
        if last.opcode not in ("bra", "brx", "ret", "exit"):
            return [(block.successors[0], state)]
        return self.branch(number, last, state)

    def branch(self, number: int, instruction: Instruction, state: State) -> list[tuple[int, State]]:
        """Fork at the end of a block."""
        successors = self.cfg.blocks[number].successors
        guard = self.evaluator.guard(instruction, state.registers)
        if instruction.opcode == "brx":
            index = self.evaluator.operand(instruction.operands[0], 32, state.registers).poly
            uniform = "uni" in instruction.modifiers or not self.terms.varies(index)
            self.branches.append(Branch(number, self.walking, index, Flow.UNIFORM if uniform else Flow.DIVERGENT))
            decided = [(s, self._decide(state, number, s, uniform, None)) for s in dict.fromkeys(successors)]
            return [(s, after) for s, after in decided if after is not None]
        if guard is None:
            return [(successors[0], state)]
        guard = self.predicates.reduce(guard, state)
        if guard.is_constant:
            return [(successors[0 if guard.constant else 1], state)]
        flow = Flow.UNIFORM if "uni" in instruction.modifiers else self.predicates.classify(guard)
        self.branches.append(Branch(number, self.walking, guard, flow))
        uniform = flow is Flow.UNIFORM
        negation = self.terms.add(guard, self.terms.constant(1, 1))
        ways = []
        for successor, condition in ((successors[0], guard), (successors[1], negation)):
            after = self._decide(state, number, successor, uniform, condition)
            if after is not None:
                ways.append((successor, after))
        return ways

    def _decide(self, state: State, block: int, successor: int, uniform: bool, condition: Poly | None) -> State | None:
        """Return the state after a decision, ``None`` where the assumptions exclude it."""
        if successor == EXIT:
            return None
        after = state.fork()
        after.path = (*state.path, Decision(block, successor, uniform, condition))
        if condition is not None:
            if self.predicates.excluded(condition, state):
                return None
            self.predicates.assume(condition, after)
        return after


def merge_visits(visits: Iterable[LoadVisit]) -> dict[int, LoadVisit]:
    """Return one visit a load: only the sources that match alike in every flow remain (section 5.1)."""
    merged: dict[int, LoadVisit] = {}
    for visit in visits:
        known = merged.get(visit.position)
        if known is None:
            merged[visit.position] = visit
            continue
        common = {p: match for p, match in known.candidates.items() if visit.candidates.get(p) == match}
        merged[visit.position] = replace(
            known,
            candidates=common,
            sure=known.sure & visit.sure,
            thread=known.thread or visit.thread,
            obstacle=known.obstacle or visit.obstacle,
            apart=known.apart or visit.apart,
        )
    return merged
