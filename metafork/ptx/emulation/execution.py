"""Executes instructions on a state: registers through ``evaluate``, memory through ``traces`` (section 4.3).

Every global load leaves a *visit*: its address, and the earlier loads of the path that hold its value in this lane or
another one of the row, with proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from metafork.ptx.emulation.borders import Borders, Choice
from metafork.ptx.emulation.evaluate import Evaluator, Value, instruction_types, type_width
from metafork.ptx.emulation.predicates import Predicates
from metafork.ptx.emulation.sampling import SEEDS, Sampler
from metafork.ptx.emulation.solver import Prover, Verdict
from metafork.ptx.emulation.states import State
from metafork.ptx.emulation.terms import Poly, Terms
from metafork.ptx.emulation.traces import LoadRecord, Match, Store, Trace, matching_lanes, overlap_in_lanes
from metafork.ptx.text import opcodes
from metafork.ptx.text.cfg import Cfg
from metafork.ptx.text.opcodes import Effect, effect, is_known, written
from metafork.ptx.text.syntax import Address, Instruction, Name, Vector

_ORDERED = frozenset({"volatile", "relaxed", "acquire", "release", "mmio", "cv", "sc", "acq_rel"})


class LoadVisit(Struct, frozen=True):
    """What one flow saw at one ``ld.global``.

    Attributes:
        address: symbolic, 64 bits.
        part: bytes of an element.
        elements: the elements that it loads, 1 but for vectors.
        thread: whether the address depends on the thread index.
        candidates: position of an earlier load → N, with load.address(%tid.x + N) = address(%tid.x) proved, and more.
        sure: those of the candidates that are executed by every lane that executes this load.
        obstacle: why this load can be neither source nor destination, ``None`` where it can.
        apart: whether lanes may be here in different passes of the loops around, and the N other than 0 hold only
            for lanes in the same passes.
    """

    position: int
    address: Poly
    part: int
    elements: int
    thread: bool
    candidates: dict[int, Match]
    sure: frozenset[int]
    obstacle: str | None
    apart: bool = False

    @property
    def size(self) -> int:
        """The bytes of the whole access."""
        return self.part * self.elements


class Executor:
    """Executes the instructions of one kernel and collects its visits."""

    def __init__(self, cfg: Cfg, evaluator: Evaluator, reach: int) -> None:
        self.cfg = cfg
        self.evaluator = evaluator
        self.terms = evaluator.terms
        self.prover = Prover(evaluator.terms)
        self.predicates = Predicates(evaluator.terms, self.prover)
        self.reach = reach
        self.visits: list[LoadVisit] = []
        self.epochs = 1
        self.parameters = {d.name: p for p in cfg.body.function.parameters for d in p.declarators}
        self.restricted = {name for name, p in self.parameters.items() if p.pointer is not None and p.pointer.restrict}
        self.matches = SampledMatches(evaluator.terms, self.prover, reach)
        self.borders = Borders(evaluator, self.predicates.at_border, self.predicates.linear)

    def new_epoch(self) -> int:
        """Return a version of memory that no load has seen."""
        self.epochs += 1
        return self.epochs

    def execute(self, position: int, instruction: Instruction, state: State) -> None:
        """Apply one instruction to a state."""
        guard = self.evaluator.guard(instruction, state.registers)
        if guard is not None:
            guard = self.predicates.reduce(guard, state)
            if guard.is_constant:
                if not guard.constant:
                    return
                guard = None
        kind = effect(instruction)
        results: Iterable[tuple[str, Value]]
        if kind is Effect.LOAD:
            results = self.load(position, instruction, state, guard)
        elif kind is Effect.NONE and is_known(instruction):
            results = self.evaluator.results(instruction, state.registers)
            if instruction.guard is None:
                self._note(state, position, self.borders.choice(position, instruction, results, state.registers))
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
            state.registers[name] = chosen = self.evaluator.select(guard, value, old)
            choice = self.borders.guarded(position, chosen, value, old) if kind is Effect.NONE else None
            self._note(state, position, choice)

    @staticmethod
    def _note(state: State, position: int, choice: Choice | None) -> None:
        if choice is not None:
            state.choices[position] = choice
        else:
            state.choices.pop(position, None)

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
        # Read-only loads mostly serve their own kind, which no store ends: they are not worth the solver's questions.
        if record.read_only or self._unbounded(self.terms.subtract(store.address, record.address), state):
            return True
        return self.prover.disjoint(store, record, state.facts) is not Verdict.YES

    def _unbounded(self, difference: Poly, state: State) -> bool:
        """Tell whether a difference can be anything: a pointer stands in it alone, of which no assumption speaks."""
        for monomial, coefficient in difference.terms:
            atom = self.terms.atoms[monomial[0]]
            if len(monomial) == 1 and coefficient & 1 and atom.width == 64 and atom.kind == "param":
                elsewhere = [(other, c) for other, c in difference.terms if other != monomial]
                others = self.terms.leaves(Poly(64, 0, tuple(elsewhere))).union(*map(self.terms.leaves, state.facts))
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

    def load(
        self, position: int, instruction: Instruction, state: State, guard: Poly | None
    ) -> list[tuple[str, Value]]:
        """Return the loaded values; note a global load's visit and append it to the trace."""
        modifiers = instruction.modifiers
        space = next(
            (s for m in modifiers if (s := m.split("::")[0]) in ("global", "param", "const", "shared", "local")), None
        )
        ordered = bool(_ORDERED.intersection(modifiers))
        kinds = instruction_types(instruction)
        kind = kinds[-1] if kinds else "b64"
        target = opcodes.target(instruction)
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
            kept = tuple(name != "_" for name in names)
            forms = self.borders.forms(address, state.choices) if self.reach else ()
            record = LoadRecord(position, address, part, kept, read_only, guard, forms=forms)
            # What asks for the second-level cache asks for what others wrote: it takes no earlier value.
            takes = obstacle is None and (read_only or "cg" not in modifiers)
            candidates = self._candidates(record, state) if takes else {}
            sure = frozenset(at for at in candidates if state.trace[at].guard in (None, guard))
            thread = self.terms.thread(address)
            self.visits.append(LoadVisit(position, address, part, len(names), thread, candidates, sure, obstacle))
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
        if instruction.guard is not None and instruction.guard.name.text.startswith(opcodes.PREFIX):
            return "it is the original load of a shuffle"
        if "lu" in instruction.modifiers:
            return "the load is the last use of its line"
        if part not in (1, 2, 4, 8):
            return "the type is wider than 64 bits"
        return None

    def _candidates(self, record: LoadRecord, state: State) -> dict[int, Match]:
        """Return the earlier loads that hold this load's value in this lane or another of the row.

        Of a load that does so in several ways the one with the fewest checks counts, then that with the least N.
        """
        found: dict[int, Match] = {}
        away: list[tuple[int, Match]] = []
        for source, lanes in matching_lanes(self.terms, state.trace, record.address, self.reach):
            if not source.serves(record):
                continue
            match = Match(lanes, source.element, frozenset(), source.checks)
            if not source.checks:
                found.setdefault(source.record.position, match)
            elif lanes:
                away.append((source.record.position, match))
        if not found:
            found = self.matches.find(record, state.trace, state.facts)
        self.matches.note(record.address)
        for form, checks in record.forms:
            for source, lanes in matching_lanes(self.terms, state.trace, form, self.reach):
                if lanes and source.serves(record):
                    away.append((source.record.position, Match(lanes, source.element, checks, source.checks)))
        for position, match in sorted(away, key=lambda way: (len(way[1].own) + len(way[1].asked), abs(way[1].lanes))):
            found.setdefault(position, match)
        return found


class SampledMatches:
    """Finds earlier loads of the same address whose normal forms differ: equal samples first, then a proof by Z3."""

    def __init__(self, terms: Terms, prover: Prover, reach: int) -> None:
        self.prover = prover
        self.reach = reach
        self.sampler = Sampler(terms)
        self._new: list[Poly] = []
        self._known: set[Poly] = set()
        self._samples: dict[int, list[tuple[Poly, int]]] = {}

    def note(self, address: Poly) -> None:
        """Remember the address of a load; its samples are taken when somebody needs them."""
        self._new.append(address)

    def find(self, record: LoadRecord, trace: Trace, facts: Sequence[Poly]) -> dict[int, Match]:
        """Return position → match of the valid loads with a proved one; none for addresses without bit operations."""
        found: dict[int, Match] = {}
        if self.prover.proofs <= 0 or not self.sampler.is_opaque(record.address):
            return found
        self._take_samples()
        for address, lanes in self._samples.get(self.sampler.value(record.address, SEEDS[0], 0), ()):
            sources = [source for source in trace.at(address) if not source.checks and source.serves(record)]
            if not sources or not self.sampler.agree(address, lanes, record.address):
                continue
            if self.prover.same(address, lanes, record.address, facts) is Verdict.YES:
                found.update((source.record.position, Match(lanes, source.element)) for source in sources)
        return found

    def _take_samples(self) -> None:
        """Remember which values the addresses so far have in the lanes around, on the first sample."""
        for address in self._new:
            if address in self._known:
                continue
            self._known.add(address)
            for lanes in range(-self.reach, self.reach + 1):
                value = self.sampler.value(address, SEEDS[0], lanes)
                self._samples.setdefault(value, []).append((address, lanes))
        self._new.clear()


def _vector_length(modifiers: Sequence[str]) -> int:
    return next((int(m[1]) for m in modifiers if m in ("v2", "v4", "v8")), 1)
