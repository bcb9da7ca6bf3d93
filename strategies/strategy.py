"""What a strategy is: a named map from a version of a program to another with the same meaning, or a refusal.

A strategy proves its own legality; what is not proved is not applied.  It is idempotent, and it lowers (or leaves)
every counter named in ``improves`` (the sigma of the paper's section 3.4, read from the strategy's side).  It is a
frozen dataclass; its fields beyond those of the protocol below, where they have a default, are its options
(``granularity{most_loops=1}``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from metafork.analysis.analyses import Analyses
from metafork.ir.program import Version


@dataclass(frozen=True, slots=True)
class Applied:
    """The new version, and one sentence for the report that says what was done and by what proof."""

    version: Version
    note: str


@dataclass(frozen=True, slots=True)
class NotApplied:
    """The strategy does not apply, or its legality is not proved; ``reason`` is for the report."""

    reason: str


@dataclass(frozen=True, slots=True)
class Sign:
    """The paper's abbreviations for a strategy in traces (section 5), in the attribute ``sign``.

    ``applied`` stands where it was applied, ``left_out`` where it could have been and was not; ``denies`` is a
    counter's sign that does not stand where it was applied.
    """

    applied: str
    left_out: str = ""
    denies: str = ""


class Strategy(Protocol):
    """A strategy.  ``name`` is its name on the command line."""

    @property
    def name(self) -> str:
        """The name used on the command line and in every output."""
        ...

    @property
    def improves(self) -> frozenset[str]:
        """The names of the counters that it may improve."""
        ...

    @property
    def on_ir(self) -> bool:
        """Whether it works on the LLVM IR (and so is appended to lambda) rather than on the program."""
        ...

    @property
    def at_leaf(self) -> bool:
        """Whether it worsens no counter and so is also applied at a finished leaf (``cse``)."""
        ...

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the transformed version, or why there is none."""
        ...


NO_OPTIONS = frozenset({"name", "improves", "on_ir", "at_leaf", "sign"})
"""Fields of a strategy that every strategy has, and so no options."""


def sign_of(strategy: object) -> Sign:
    """Return the signs of a strategy in traces; it may leave them out, and then stands by its name."""
    sign = getattr(strategy, "sign", None)
    return sign if isinstance(sign, Sign) else Sign(str(getattr(strategy, "name", "")))
