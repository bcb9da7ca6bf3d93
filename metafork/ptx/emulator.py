"""Symbolic emulation of one kernel (PTXASW section 4): walks every flow once and leaves what each global load saw.

Flows fork at branches under assumptions; a predicate that the assumptions decide takes one way only.  Where flows
join, states with equal live registers become one (memoisation).  States that lanes of one warp can be in at the same
time (they parted at a branch that differs between lanes) *must* become one, with an unknown in every register in
which they differ: the address in the neighbouring lane is found by moving %tid.x, and that lane may have come another
way.  Loops are walked over symbols: a register whose every pass adds the same invariant step becomes
``start + step · k`` with the iteration number ``k`` (induction variable recognition), any other an unknown; ``k`` is
the same in all lanes only if no branch of the loop depends on the lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from metafork.ptx.cfg import EXIT, Cfg, Loop
from metafork.ptx.evaluate import Evaluator, Value, instruction_types, type_width
from metafork.ptx.opcodes import Effect, effect, is_known, written
from metafork.ptx.sampling import SEEDS, Sampler
from metafork.ptx.solver import Prover, Verdict
from metafork.ptx.syntax import Address, Instruction, Name, Vector
from metafork.ptx.terms import Poly, Terms
from metafork.ptx.traces import LoadRecord, Store, Trace, matching_lanes, overlap_in_lanes

MOST_STATES = 8
"""More states than this at one join become one, with unknowns where they differ."""

_ORDERED = frozenset({"volatile", "relaxed", "acquire", "release", "mmio", "cv", "sc", "acq_rel"})


class Unclear(Exception):  # noqa: N818  # it is a verdict on the kernel, not a fault
    """The kernel cannot be emulated; the message says why, and the kernel is left alone."""


class Flow(IntEnum):
    """How a branch condition differs between the lanes of a warp; greater is worse."""

    UNIFORM = 0
    BOUND = 1
    """An order comparison linear in the thread index, ``i < n``: true for whole warps but for the last."""
    DIVERGENT = 2


@dataclass(frozen=True, slots=True)
class Decision:
    """A branch taken on a path: its block, which successor, and whether all lanes of a warp decide alike."""

    block: int
    successor: int
    uniform: bool


@dataclass(slots=True)
class State:
    """One flow at one point; owned by the emulator."""

    registers: dict[str, Value] = field(default_factory=dict)
    facts: tuple[Poly, ...] = ()
    known: dict[int, bool] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    epoch: int = 1
    path: tuple[Decision, ...] = ()

    def fork(self) -> State:
        """Return an independent copy."""
        return State(dict(self.registers), self.facts, dict(self.known), self.trace.copy(), self.epoch, self.path)


@dataclass(frozen=True, slots=True)
class LoadVisit:
    """What one flow saw at one ``ld.global``.

    Attributes:
        address: symbolic, 64 bits.
        size: bytes of the whole access.
        thread: whether the address depends on the thread index.
        candidates: position of an earlier load → N, with load.address(%tid.x + N) = address(%tid.x) proved.
        obstacle: why this load can be neither source nor destination, ``None`` where it can.
    """

    position: int
    address: Poly
    size: int
    thread: bool
    candidates: dict[int, int]
    obstacle: str | None


@dataclass(frozen=True, slots=True)
class Emulation:
    """The result: all visits of global loads, the worst flow of each branching block, and the table of terms."""

    terms: Terms
    visits: tuple[LoadVisit, ...]
    flows: dict[int, Flow]
    questions: int


def emulate(cfg: Cfg, evaluator: Evaluator, *, reach: int = 31, budget: int = 400_000) -> Emulation:
    """Emulate a kernel from its entry.

    Args:
        cfg: its control flow.
        evaluator: the meaning of its instructions; its terms are those of the result.
        reach: the largest |N| looked for.
        budget: the most instructions evaluated.

    Raises:
        Unclear: the control flow is irreducible, or the budget does not suffice.
    """
    if not cfg.reducible:
        raise Unclear("the control flow has a cycle with two entries")
    emulator = _Emulator(cfg, evaluator, reach, budget)
    if cfg.blocks:
        emulator.region(None, 0, [State()])
    flows: dict[int, Flow] = {}
    for block, flow in emulator.flows:
        flows[block] = max(flow, flows.get(block, Flow.UNIFORM))
    return Emulation(evaluator.terms, tuple(emulator.visits), flows, emulator.prover.asked)


class _Emulator:
    def __init__(self, cfg: Cfg, evaluator: Evaluator, reach: int, budget: int) -> None:
        self.cfg = cfg
        self.evaluator = evaluator
        self.terms = evaluator.terms
        self.prover = Prover(evaluator.terms)
        self.reach = reach
        self.budget = budget
        self.visits: list[LoadVisit] = []
        self.flows: list[tuple[int, Flow]] = []
        self.epochs = 1
        self.serial = 0
        self.parameters = {d.name: p for p in cfg.body.function.parameters for d in p.declarators}
        self.restricted = {name for name, p in self.parameters.items() if p.pointer is not None and p.pointer.restrict}
        self.sampler = Sampler(evaluator.terms)
        self.unsampled: list[Poly] = []
        self.sampled: set[Poly] = set()
        self.samples: dict[int, list[tuple[Poly, int]]] = {}

    # --- regions and loops --------------------------------------------------------------------------------------

    def region(self, loop: Loop | None, start: int, states: list[State]) -> tuple[list[tuple[int, State]], list[State]]:
        """Walk the whole function or one pass of a loop; return the states that leave it and those that go round."""
        pending: dict[int, list[State]] = {start: states}
        leaving: list[tuple[int, State]] = []
        latches: list[State] = []
        for block in self.cfg.order:
            arrived = pending.pop(block, None)
            if arrived is None:
                continue
            for state in self.join(block, arrived):
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
        """Walk a loop: once to find its induction variables, once or twice to see its loads."""
        terms = self.terms
        changed = self._changed(loop)
        entry = before.fork()
        entry.trace = Trace()
        entry.registers = {name: v for name, v in before.registers.items() if name in self.cfg.live[loop.header]}
        changed &= entry.registers.keys()
        mark_atoms, mark_epoch = len(terms.atoms), self.epochs
        mark_visits, mark_flows = len(self.visits), len(self.flows)

        self.serial += 1
        first = entry.fork()
        first.epoch = self.new_epoch()
        symbols: dict[str, Poly] = {}
        for name in changed:
            width = entry.registers[name].poly.width
            symbols[name] = terms.atom("loop", width, (loop.header, self.serial, name), varies=True)
            first.registers[name] = Value(symbols[name])
        _, latches = self.region(loop, loop.header, [first])
        steps = {name: self._step(symbols[name], name, latches, mark_atoms, mark_epoch) for name in changed}

        for uniform in (True, False):
            del self.visits[mark_visits:]
            del self.flows[mark_flows:]
            self.serial += 1
            iteration = terms.atom("loop", 64, (loop.header, self.serial), varies=not uniform)
            state = entry.fork()
            state.epoch = self.new_epoch()
            for name in changed:
                state.registers[name] = self._induction(
                    entry.registers[name], steps[name], iteration, (loop.header, self.serial, name)
                )
            leaving, _ = self.region(loop, loop.header, [state])
            if all(flow is Flow.UNIFORM for _, flow in self.flows[mark_flows:]):
                break
        for _, state in leaving:
            state.trace = Trace()
        return leaving

    def _changed(self, loop: Loop) -> set[str]:
        changed: set[str] = set()
        for number in loop.blocks:
            block = self.cfg.blocks[number]
            for instruction in self.cfg.body.instructions[block.start : block.end]:
                changed.update(name.text for name in written(instruction))
        return changed

    def _step(
        self, symbol: Poly, name: str, latches: Sequence[State], mark_atoms: int, mark_epoch: int
    ) -> tuple[Poly, Poly | None] | None:
        """Return what every pass adds to a register, and the exact integer of it for a 32-bit one."""
        terms = self.terms
        found: set[tuple[Poly, Poly | None]] = set()
        for latch in latches:
            value = latch.registers.get(name)
            if value is None:
                return None
            step = terms.subtract(value.poly, symbol)
            if self._variant(step, mark_atoms, mark_epoch):
                return None
            image: Poly | None = None
            if value.image is not None:
                image = terms.subtract(value.image, terms.sign_extend(symbol, 64))
                if self._variant(image, mark_atoms, mark_epoch):
                    image = None
            found.add((step, image))
        return found.pop() if len(found) == 1 else None

    def _variant(self, poly: Poly, mark_atoms: int, mark_epoch: int) -> bool:
        """Tell whether a value may change from pass to pass: it depends on something that the pass made."""
        for monomial, _ in poly.terms:
            for number in monomial:
                atom = self.terms.atoms[number]
                if number < mark_atoms or atom.kind in ("sreg", "wide", "param", "symbol"):
                    continue
                if atom.kind in ("loop", "phi", "unknown", "shifted"):
                    return True
                if atom.kind == "load" and isinstance(atom.args[1], int) and atom.args[1] > mark_epoch:
                    return True
                if any(isinstance(a, Poly) and self._variant(a, mark_atoms, mark_epoch) for a in atom.args):
                    return True
        return False

    def _induction(
        self, start: Value, step: tuple[Poly, Poly | None] | None, iteration: Poly, key: tuple[int, int, str]
    ) -> Value:
        terms, width = self.terms, start.poly.width
        if step is None or width == 1:
            return Value(terms.atom("loop", width, key, varies=True))
        by, by_image = step
        if by == terms.constant(width, 0):
            return start
        poly = terms.add(start.poly, terms.multiply(by, terms.truncate(iteration, width)))
        if width != 32 or by_image is None:
            return Value(poly)
        return Value(poly, terms.add(self.evaluator.image(start), terms.multiply(by_image, iteration)))

    def new_epoch(self) -> int:
        """Return a version of memory that no load has seen."""
        self.epochs += 1
        return self.epochs

    # --- joins --------------------------------------------------------------------------------------------------

    def join(self, block: int, arrived: list[State]) -> list[State]:
        """Make the states that reach a block as few as is sound, see the module's head."""
        live = self.cfg.live[block]
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
        self.serial += 1
        registers: dict[str, Value] = {}
        for name, value in first.registers.items():
            values = [state.registers.get(name) for state in others]
            if all(other == value for other in values):
                registers[name] = value
            elif all(other is not None and other.poly == value.poly for other in values):
                registers[name] = Value(value.poly)
            elif all(other is not None for other in values):
                key = (block, self.serial, name)
                registers[name] = Value(self.terms.atom("phi", value.poly.width, key, varies=True))
        facts = tuple(fact for fact in first.facts if all(fact in state.facts for state in others))
        known = {n: v for n, v in first.known.items() if all(state.known.get(n) == v for state in others)}
        trace = first.trace
        for state in others:
            trace.intersect(state.trace)
        epoch = first.epoch if all(state.epoch == first.epoch for state in others) else self.new_epoch()
        path = first.path
        for state in others:
            path = _common_prefix(path, state.path)
        return State(registers, facts, known, trace, epoch, path)

    # --- blocks -------------------------------------------------------------------------------------------------

    def block(self, number: int, state: State) -> list[tuple[int, State]]:
        """Execute one block; return its successors with their states."""
        block = self.cfg.blocks[number]
        instructions = self.cfg.body.instructions
        self.budget -= block.end - block.start
        if self.budget < 0:
            raise Unclear("the kernel has too many flows to emulate")
        for position in range(block.start, block.end):
            self.execute(position, instructions[position], state)
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
            self.flows.append((number, Flow.UNIFORM if uniform else Flow.DIVERGENT))
            decided = [(s, self._decide(state, number, s, uniform, None)) for s in dict.fromkeys(successors)]
            return [(s, after) for s, after in decided if after is not None]
        if guard is None:
            return [(successors[0], state)]
        guard = self.reduce(guard, state)
        if guard.is_constant:
            return [(successors[0 if guard.constant else 1], state)]
        flow = Flow.UNIFORM if "uni" in instruction.modifiers else self.classify(guard)
        self.flows.append((number, flow))
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
        after.path = (*state.path, Decision(block, successor, uniform))
        if condition is not None:
            related = self._related(condition, state)
            if related and self.prover.feasible((*related, condition)) is Verdict.NO:
                return None
            after.facts = (*state.facts, condition)
            self.learn(condition, after)
        return after

    def _related(self, condition: Poly, state: State) -> list[Poly]:
        """Return the assumptions that could exclude a condition: those over its own integers, else any that touch it.

        Leaving assumptions out is sound, and products that a guard brings in make the question hard.
        """
        own = self._leaves(condition)
        leaves = [(fact, self._leaves(fact)) for fact in state.facts]
        return [fact for fact, theirs in leaves if theirs and theirs <= own] or [
            f for f, theirs in leaves if theirs & own
        ]

    def _leaves(self, poly: Poly) -> set[int]:
        leaves: set[int] = set()
        for monomial, _ in poly.terms:
            for number in monomial:
                atom = self.terms.atoms[number]
                if atom.kind.startswith("op "):
                    continue
                inner = [a for a in atom.args if isinstance(a, Poly)]
                if atom.kind == "load" or not inner:
                    leaves.add(number)
                for argument in inner:
                    leaves |= self._leaves(argument)
        return leaves

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

    def execute(self, position: int, instruction: Instruction, state: State) -> None:
        """Apply one instruction to a state."""
        guard = self.evaluator.guard(instruction, state.registers)
        if guard is not None:
            guard = self.reduce(guard, state)
            if guard.is_constant:
                if not guard.constant:
                    return
                guard = None
        kind = effect(instruction)
        results: Iterable[tuple[str, Value]]
        if kind is Effect.LOAD:
            results = self.load(position, instruction, state)
        elif kind is Effect.NONE and is_known(instruction):
            results = self.evaluator.results(instruction, state.registers)
        else:
            if kind is Effect.STORE:
                self.store(instruction, state)
            elif kind is not Effect.NONE:
                state.trace.order(new_grid=kind is Effect.NEW_GRID)
                state.epoch = self.new_epoch()
            results = [(name.text, self._unknown(name.text)) for name in written(instruction)]
        if guard is None:
            state.registers.update(results)
            return
        for name, value in results:
            old = state.registers.get(name)
            if old is None or old.poly.width != value.poly.width:
                old = self._unknown(name, value.poly.width)
            state.registers[name] = self.evaluator.select(guard, value, old)

    def _unknown(self, name: str, width: int | None = None) -> Value:
        return Value(self.terms.unknown(width or self.evaluator.widths.get(name, 64)))

    def store(self, instruction: Instruction, state: State) -> None:
        """End the loads that a store may overlap."""
        modifiers = instruction.modifiers
        if _ORDERED.intersection(modifiers):
            state.trace.order()
        elif not {"shared", "local", "param"}.intersection(m.split("::")[0] for m in modifiers):
            kinds = instruction_types(instruction)
            size = (type_width(kinds[-1]) // 8 if kinds else 16) * _vector_length(modifiers)
            store = Store(self.evaluator.address(instruction.operands[0], state.registers), size)
            state.trace.store(store, lambda written, record: self.may_overlap(written, record, state))
        else:
            return
        state.epoch = self.new_epoch()

    def may_overlap(self, store: Store, record: LoadRecord, state: State) -> bool:
        """Tell whether a store may overlap a load, in its own thread or another lane; only a proof says no."""
        answer = overlap_in_lanes(self.terms, store, record)
        if answer is not None:
            return answer
        here, there = self._pointers(store.address), self._pointers(record.address)
        if len(here) == len(there) == 1 and here != there and (here | there) & self.restricted:
            return False
        if self._unbounded(self.terms.subtract(store.address, record.address), state):
            return True
        return self.prover.disjoint(store, record, state.facts) is not Verdict.YES

    def _unbounded(self, difference: Poly, state: State) -> bool:
        """Tell whether a difference can be anything: a pointer stands in it alone, of which no assumption speaks."""
        for monomial, coefficient in difference.terms:
            atom = self.terms.atoms[monomial[0]]
            if len(monomial) == 1 and coefficient & 1 and atom.width == 64 and atom.kind == "param":
                elsewhere = [(other, c) for other, c in difference.terms if other != monomial]
                others = self._leaves(Poly(64, 0, tuple(elsewhere))).union(*map(self._leaves, state.facts))
                if monomial[0] not in others:
                    return True
        return False

    def _pointers(self, address: Poly) -> set[str]:
        """Return the pointer parameters that an address is based on: those it contains once."""
        return {
            str(self.terms.atoms[monomial[0]].args[0])
            for monomial, coefficient in address.terms
            if len(monomial) == 1 and coefficient == 1 and self.terms.atoms[monomial[0]].kind == "param"
        }

    def load(self, position: int, instruction: Instruction, state: State) -> list[tuple[str, Value]]:
        """Return the loaded values; note a global load's visit and append it to the trace."""
        modifiers = instruction.modifiers
        space = next(
            (s for m in modifiers if (s := m.split("::")[0]) in ("global", "param", "const", "shared", "local")), None
        )
        ordered = bool(_ORDERED.intersection(modifiers))
        kinds = instruction_types(instruction)
        kind = kinds[-1] if kinds else "b64"
        target = instruction.operands[0]
        names = [e.text if isinstance(e, Name) else "_" for e in target.elements] if isinstance(target, Vector) else []
        if isinstance(target, Name):
            names = [target.text]
        if space == "param":
            return self._load_parameter(instruction, names, kind)
        if space not in ("global", "const"):
            if ordered:
                state.trace.order()
                state.epoch = self.new_epoch()
            return [(name, self._unknown(name)) for name in names if name != "_"]
        address = self.evaluator.address(instruction.operands[1], state.registers)
        part = type_width(kind) // 8
        read_only = space == "const" or "nc" in modifiers
        if space == "global":
            obstacle = self._obstacle(instruction, part, ordered)
            record = LoadRecord(position, address, part * len(names), read_only)
            candidates = self._candidates(record, state) if obstacle is None else {}
            thread = self.terms.thread(address)
            self.visits.append(LoadVisit(position, address, record.size, thread, candidates, obstacle))
            if obstacle is None:
                state.trace.add(record)
        if ordered:
            state.trace.order()
            state.epoch = self.new_epoch()
            return [(name, self._unknown(name)) for name in names if name != "_"]
        results = []
        for index, name in enumerate(names):
            if name == "_":
                continue
            at = self.terms.add(address, self.terms.constant(64, index * part))
            atom = self.terms.atom("load", 8 * part, (space, 0 if read_only else state.epoch, at))
            results.append((name, Value(self._widen(atom, name, kind))))
        return results

    def _widen(self, poly: Poly, name: str, kind: str) -> Poly:
        width = self.evaluator.widths.get(name, poly.width)
        if width <= poly.width:
            return self.terms.truncate(poly, width)
        return (self.terms.sign_extend if kind[0] == "s" else self.terms.zero_extend)(poly, width)

    def _load_parameter(self, instruction: Instruction, names: list[str], kind: str) -> list[tuple[str, Value]]:
        operand = instruction.operands[1]
        known = isinstance(operand, Address) and isinstance(operand.base, Name) and operand.base.text in self.parameters
        results = []
        for index, name in enumerate(names):
            if name == "_":
                continue
            if not known or not self.cfg.body.function.kernel:
                results.append((name, self._unknown(name)))
                continue
            assert isinstance(operand, Address)
            offset = operand.offset + index * (type_width(kind) // 8)
            atom = self.terms.atom("param", type_width(kind), (str(operand.base), offset))
            results.append((name, Value(self._widen(atom, name, kind))))
        return results

    @staticmethod
    def _obstacle(instruction: Instruction, part: int, ordered: bool) -> str | None:
        if ordered:
            return "the access is volatile or ordered"
        if instruction.guard is not None:
            return "the load is predicated"
        if isinstance(instruction.operands[0], Vector):
            return "the load is a vector"
        if "lu" in instruction.modifiers:
            return "the load is the last use of its line"
        if part not in (1, 2, 4, 8):
            return "the type is wider than 64 bits"
        return None

    def _candidates(self, record: LoadRecord, state: State) -> dict[int, int]:
        """Return the earlier loads that hold this load's value in this lane or another of the row."""
        found: dict[int, int] = {}
        for source, lanes in matching_lanes(self.terms, state.trace, record.address, self.reach):
            if source.size == record.size:
                found.setdefault(source.position, lanes)
        if not found and self.sampler.is_opaque(record.address):
            self._sample()
            found.update(self._solver_matches(record, state))
        self.unsampled.append(record.address)
        return found

    def _sample(self) -> None:
        """Remember which values the addresses so far have in the lanes around, on the first sample."""
        for address in self.unsampled:
            if address in self.sampled:
                continue
            self.sampled.add(address)
            for lanes in range(-self.reach, self.reach + 1):
                value = self.sampler.value(address, SEEDS[0], lanes)
                self.samples.setdefault(value, []).append((address, lanes))
        self.unsampled.clear()

    def _solver_matches(self, record: LoadRecord, state: State) -> dict[int, int]:
        """Return valid loads of the same address in some lane whose forms differ: same samples, and a proof by Z3."""
        found: dict[int, int] = {}
        for address, lanes in self.samples.get(self.sampler.value(record.address, SEEDS[0], 0), ()):
            sources = [source for source in state.trace.at(address) if source.size == record.size]
            if not sources or not self.sampler.agree(address, lanes, record.address):
                continue
            if self.prover.same(address, lanes, record.address, state.facts) is Verdict.YES:
                found.update((source.position, lanes) for source in sources)
        return found


def _vector_length(modifiers: Sequence[str]) -> int:
    return next((int(m[1]) for m in modifiers if m in ("v2", "v4", "v8")), 1)


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


def merge_visits(visits: Iterable[LoadVisit]) -> dict[int, LoadVisit]:
    """Return one visit a load: only the sources with the same N in every flow remain (section 5.1)."""
    merged: dict[int, LoadVisit] = {}
    for visit in visits:
        known = merged.get(visit.position)
        if known is None:
            merged[visit.position] = visit
            continue
        common = {p: n for p, n in known.candidates.items() if visit.candidates.get(p) == n}
        merged[visit.position] = replace(
            known,
            candidates=common,
            thread=known.thread or visit.thread,
            obstacle=known.obstacle or visit.obstacle,
        )
    return merged
