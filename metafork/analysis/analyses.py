"""The analyses of one run: what was found out about a program is found out once.

Counters and strategies ask for the same facts, references, plans and kernels of the same few programs.  What a strategy
makes of a version is one of them: the discussion, the order and the explanation of a tree ask for it.  An
``Analyses`` is made for a run and handed to them; nothing of it outlives the run.  Facts and references depend on what
a program computes alone, so versions that differ in their mappings share them.

A run is for one kind of hardware: counters and strategies ask here how wide warps are and who counts registers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint
from metafork.algebra.prover import Answers, Prover
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.facts import program_facts
from metafork.analysis.reference_walk import references
from metafork.analysis.references import Reference
from metafork.analysis.values.scope import Facts
from metafork.ir.ir_strategies import IrStrategy
from metafork.ir.kernel import Kernel
from metafork.ir.mapping import UNMAPPED
from metafork.ir.marks import unmarked
from metafork.ir.program import Program

S = TypeVar("S", bound=Hashable)
T = TypeVar("T")

WARP_SIZE = 32
"""Threads of a warp where neither machine nor back end says otherwise."""


CountRegisters = Callable[[Kernel, tuple[IrStrategy, ...]], int]
"""Registers of a thread of a kernel under the IR strategies of its leaf; raises ``NotCountedError``."""


class NotCountedError(Exception):
    """The registers of a kernel are not known; the message says why."""


class Hardware(Struct, frozen=True):
    """What counters ask of a kind of GPU beside the limits of a machine.

    ``warp_size`` threads run together, and registers are handed out to as many.  ``count_registers`` counts those of a
    thread; ``None`` stands for the model of NVIDIA's compiler.  ``ptx`` says whether kernels may be PTX: if they may
    not, strategies on the IR take no part.  ``machines`` are those that trees are for if nobody says it, in the words
    of ``--machine``.
    """

    warp_size: int = WARP_SIZE
    count_registers: CountRegisters | None = None
    ptx: bool = True
    machines: str = "all"


NVIDIA = Hardware(machines="sm_75..sm_120")
"""The GPUs that nvcc 13 compiles for."""


class Analyses:
    """Results by analysis and subjects; subjects are compared by value, and hashed once each."""

    def __init__(self, hardware: Hardware = NVIDIA) -> None:
        self.hardware = hardware
        self._kept: dict[Hashable, Hashable] = {}
        # A subject is a whole program: once hashed it is known by its identity, and kept alive for that.
        self._known: dict[int, tuple[Hashable, Hashable]] = {}
        self._results: dict[tuple[object, ...], Any] = {}
        self._answers = Answers()

    def of(self, analysis: Callable[[S, Analyses], T], subject: S) -> T:
        """Return ``analysis(subject, self)``, computed once; what it raised is raised again."""
        result: T = self._once((analysis, self._identity(subject)), lambda: analysis(subject, self))
        return result

    def facts(self, program: Program) -> Facts:
        """Return the facts of a program."""
        return self.of(_facts, self.unmapped(program))

    def unmapped(self, program: Program) -> Program:
        """Return the program without its mapping: what it computes."""
        return self.of(_unmapped, program)

    def references(self, program: Program, facts: Facts) -> tuple[Reference, ...]:
        """Return the accesses of a program to arrays, in evaluation order, with indices in terms of ``facts``."""
        unmapped = self.unmapped(program)
        key = (references, self._identity(unmapped), self._identity(facts))
        found: tuple[Reference, ...] = self._once(key, lambda: references(unmapped, facts))
        return found

    def prover(self, premises: Iterable[Constraint], quotients: Iterable[DerivedSymbol]) -> Prover:
        """Return the prover from these premises, with all that it has proved so far."""
        given = (tuple(premises), tuple(quotients))
        prover: Prover = self._once((Prover, given), lambda: Prover(*given, answers=self._answers))
        return prover

    def _once(self, key: tuple[object, ...], compute: Callable[[], Any]) -> Any:
        if key not in self._results:
            try:
                self._results[key] = compute()
            except Exception as error:
                self._results[key] = _Raised(error)
                raise
        result = self._results[key]
        if isinstance(result, _Raised):
            raise result.error
        return result

    def _identity(self, subject: Hashable) -> int:
        known = self._known.get(id(subject))
        if known is None:
            known = self._known[id(subject)] = (subject, self._kept.setdefault(subject, subject))
        return id(known[1])


class _Raised(Struct, frozen=True):
    """What an analysis raised instead of a result."""

    error: Exception


def _unmapped(program: Program, _: Analyses) -> Program:
    return replace(program, mapping=UNMAPPED, striding=None, body=unmarked(program.body))


def _facts(program: Program, _: Analyses) -> Facts:
    return program_facts(program)
