"""shuffle: values of neighbouring lanes instead of loads from global memory (after PTXASW; see ``docs/shuffle.md``).

``program, lambda --> program, lambda + shuffle``

The leaf becomes the PTX that LLVM makes of its kernel, in which loads whose value another lane of the warp holds are
replaced by shuffles, and loads of the same address by registers.  Where arrays go through shared memory and nothing is
left to replace, the strategy takes them out of it first, as ``caching`` does: the copies in a block's shared memory and
the values in a warp's registers are two ways to load once what neighbours share.

Legality: ``metafork.ptx`` proves for each replaced load that the lane it takes from holds that very address's value,
and that nothing wrote it in between.  Lanes without such a neighbour in their warp and row of threads, and warps that
are not complete, make the original load, so that blocks of any shape and size are right.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, Polynomial, at_most, less_than
from metafork.algebra.prover import Prover
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.evaluators.global_loads import global_loads
from metafork.evaluators.leaf_ptx import ptx_of
from metafork.ir.ir_strategies import SHUFFLE
from metafork.ir.program import Version
from metafork.llvm.leaf_ptx import LeafPtx, load_places
from metafork.ptx.shuffles.shuffle import KernelReport
from metafork.strategies.caching import without_shared_memory
from metafork.strategies.strategy import Applied, Effect, NotApplied, Strategy

SHUFFLED = "shuffles instead of loads"
"""What a leaf is called whose loads became shuffles."""
_MOST_SHARES = 4
"""How many elements a thread is at most proved to copy, beyond which no proof is tried."""


class Shuffle(Strategy, frozen=True):
    """Append ``shuffle`` to the IR strategies, where that is proved to leave fewer loads."""

    name: str = SHUFFLE.name
    improves: frozenset[str] = frozenset({"global_loads"})
    on_ir: ClassVar[bool] = True

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with shuffles, or the reason why no load can be replaced."""
        if SHUFFLE in version.ir_strategies:
            return NotApplied("it is applied already")
        shuffled = replace(version, ir_strategies=(*version.ir_strategies, SHUFFLE))
        result = self._kept(version, shuffled, analyses)
        cached = version.program.mapping.cached
        if isinstance(result, Applied) or not cached:
            return result
        uncached = replace(shuffled, program=version.program.mapped(cached=()))
        other = self._kept(version, uncached, analyses)
        if isinstance(other, Applied):
            note = f"took {', '.join(cached)} out of shared memory; {other.note}"
            return Applied(
                uncached, note, Effect(f"{without_shared_memory(uncached.program, cached)}, {SHUFFLED}", of_memory=True)
            )
        return NotApplied(f"{result.reason}; without {', '.join(cached)} in shared memory: {other.reason}")

    def _kept(self, before: Version, after: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return ``after`` where loads are replaced and are proved to be fewer than those of ``before``."""
        code = ptx_of(after, analyses)
        if isinstance(code, NotKnown):
            return NotApplied(code.reason)
        report = code.report
        assert report is not None
        if not report.shuffles and not report.reuses:
            return NotApplied(_why_none(report))
        old, new = global_loads(before, analyses), global_loads(after, analyses)
        if isinstance(old, NotKnown):
            return NotApplied(f"global_loads is not known: {old.reason}")
        if isinstance(new, NotKnown):
            return NotApplied(f"global_loads is not known afterwards: {new.reason}")
        if not _fewer(before, old, new, analyses):
            return NotApplied(f"{new.numerator} loads a thread are not proved to be fewer than {old.numerator}")
        shuffles, reuses = _on_the_straight_way(code)
        words = [f"{shuffles} loads became shuffles"] if shuffles else []
        words += [f"{reuses} reuse a register"] if reuses else []
        note = f"{' and '.join(words)}, {_proof(report)}; {new.numerator} loads remain where a warp is whole"
        return Applied(after, note, Effect(SHUFFLED), schedule=())


def _on_the_straight_way(code: LeafPtx) -> tuple[int, int]:
    """Return how many shuffles and reuses stand on the way of launches that cover the grid."""
    places = load_places(code.plain)
    assert places is not None
    assert code.report is not None
    shuffles, reuses = (sum(s.span in places[0] for s in found) for found in (code.report.shuffles, code.report.reuses))
    return shuffles, reuses


def _why_none(report: KernelReport) -> str:
    reasons = list(dict.fromkeys(left.reason for left in report.left_alone))
    return "; ".join(reasons) or report.unchanged or "no load has a source in another lane"


def _proof(report: KernelReport) -> str:
    assuming = f", assuming {', '.join(report.assumptions)}" if report.assumptions else ""
    return f"proved by symbolic emulation{assuming}"


def _fewer(version: Version, old: CounterValue, new: CounterValue, analyses: Analyses) -> bool:
    if old.denominator != ONE or new.denominator != ONE:
        return False
    facts = analyses.facts(version.program)
    derived = tuple(dict.fromkeys((*facts.derived, *old.derived, *new.derived)))
    known = [constraint for symbol in derived for constraint in symbol.constraints()]
    difference = old.numerator - new.numerator
    if difference.is_constant:
        return difference.constant_value() >= 1
    prover = analyses.prover((*facts.constraints, *known), derived)
    if any(coefficient < 0 for coefficient in old.numerator.terms().values()) or not new.numerator.is_constant:
        return bool(prover.proves(at_most(ONE, difference)))
    # Without negative terms the least value of each symbol gives the least of the whole.
    least = {name: _least(name, derived, prover) for name in old.numerator.symbols}
    return new.numerator.constant_value() < old.numerator.substitute(least).constant_value()


def _least(name: str, derived: tuple[DerivedSymbol, ...], prover: Prover) -> int:
    """Return a number that a symbol is proved to reach; every symbol is at least 0."""
    least = 1 if prover.proves(at_most(1, Polynomial.symbol(name))) else 0
    for symbol in derived:
        if symbol.name == name and symbol.kind == "ceiling":
            numerator, denominator = symbol.operands
            while least < _MOST_SHARES and prover.proves(less_than(denominator * least, numerator)):
                least += 1
    return least


STRATEGY = Shuffle()
