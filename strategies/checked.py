"""A strategy whose programs are checked against the invariants of the IR (in tests, and with ``METAFORK_VERIFY=1``)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from evaluators.counter import Counter
from metafork.analysis.analyses import Analyses
from metafork.ir.invariants import InvariantError, check_program
from metafork.ir.program import Version
from strategies.strategy import (
    Applied,
    Least,
    NotApplied,
    Sign,
    Strategy,
    at_fork,
    by_choice,
    by_itself,
    caches,
    falls_back,
    floors,
    least,
    sign_of,
)


class Checked(Struct, frozen=True):
    """``strategy``, with every program that it makes checked.  ``apply`` raises ``InvariantError``."""

    strategy: Strategy

    @property
    def name(self) -> str:
        """The strategy's name."""
        return self.strategy.name

    @property
    def improves(self) -> frozenset[str]:
        """What the strategy may improve."""
        return self.strategy.improves

    @property
    def on_ir(self) -> bool:
        """Whether the strategy works on the IR."""
        return self.strategy.on_ir

    @property
    def at_leaf(self) -> bool:
        """Whether the strategy is applied at leaves."""
        return self.strategy.at_leaf

    @property
    def at_fork(self) -> bool:
        """Whether the strategy splits leaves."""
        return at_fork(self.strategy)

    @property
    def by_itself(self) -> bool:
        """Whether the strategy splits what the others leave, leaf by leaf."""
        return by_itself(self.strategy)

    @property
    def by_choice(self) -> bool:
        """Whether the strategy is tried where no limit asks for it."""
        return by_choice(self.strategy)

    @property
    def least(self) -> Mapping[str, Least]:
        """What counters must be at least for the strategy to pay."""
        return least(self.strategy)

    @property
    def floors(self) -> tuple[Counter, ...]:
        """The strategy's own counters that must be at least 1 for it to pay."""
        return floors(self.strategy)

    @property
    def falls_back(self) -> bool:
        """Whether a path ends as without the strategy where it costs too much."""
        return falls_back(self.strategy)

    @property
    def caches(self) -> bool:
        """Whether the strategy puts arrays into shared memory."""
        return caches(self.strategy)

    @property
    def sign(self) -> Sign:
        """The strategy's sign in traces."""
        return sign_of(self.strategy)

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Apply the strategy and check what it made."""
        result = self.strategy.apply(version, analyses)
        if isinstance(result, Applied):
            try:
                check_program(result.version.program)
            except InvariantError as error:
                raise InvariantError(f"{self.name} made a wrong program: {error}") from error
        return result
