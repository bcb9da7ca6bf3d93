"""What a strategy is: a named map from a version of a program to another with the same meaning, or a refusal.

A strategy proves its own legality; what is not proved is not applied.  It is idempotent, and it lowers (or leaves)
every counter named in ``improves`` (the sigma of the paper's section 3.4, read from the strategy's side).  It extends
``Strategy``; its own fields that have a default are its options (``granularity{most_loops=1}``).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import CounterOf
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.program import Version
from metafork.transform.directive import Refused, Schedule, applied

V = TypeVar("V", bound=Hashable)
V_co = TypeVar("V_co", bound=Hashable, covariant=True)

Topic = Literal["coalescing", "shared memory", "registers", "grid", "constant memory"]


class Remark(Struct, frozen=True):
    """An array or a loop that was taken up (into shared memory, into registers, into the grid) or was not, and why.

    ``subject`` names it (``x``, ``the loop over k``) and stands at ``span``; ``fault`` is the access or statement that
    decided, and ``hint`` the rewriting that would change a refusal.  Spans are ``NOWHERE`` where no text stands behind.
    """

    topic: Topic
    subject: str
    taken: bool
    reason: str
    span: Span = NOWHERE
    fault: Span = NOWHERE
    hint: str = ""


class Effect(Struct, frozen=True):
    """What a strategy did to a leaf, in a few words: ``fewer registers``, more exactly ``level 2``.

    A leaf is named by the effects on it; a later one replaces an earlier one of the same ``what``.  Those that say
    where arrays are kept (``of_memory``) come first; what holds only ``while_empty`` is left out where some array
    went to shared memory since.
    """

    what: str
    detail: str = ""
    of_memory: bool = False
    while_empty: bool = False

    def __str__(self) -> str:
        """Return the words of a leaf's name."""
        return f"{self.what} ({self.detail})" if self.detail else self.what


class Need(Struct, Generic[V], frozen=True):
    """A counter that must be so large on a version for it to pay: at least a number, or the threads of a warp."""

    counter: CounterOf[V]
    least: int | Literal["warp_size"]


class Applied(Struct, frozen=True):
    """The new version, the directives that make it, and one sentence for the report: what was done, by what proof.

    ``schedule`` is ``None`` where a strategy does not say its directives, and empty for what works on the LLVM IR.
    ``effect`` names leaves (by default the strategy's name does);
    ``remarks`` are for ``metafork explain``.  Of a variant, ``needs`` are what must be there for it to pay; where it is
    not, the strategy ``otherwise`` takes the place of the one that was applied.
    """

    version: Version
    note: str
    effect: Effect | None = None
    remarks: tuple[Remark, ...] = ()
    needs: tuple[Need[Version], ...] = ()
    otherwise: Strategy | None = None
    schedule: Schedule | None = None


class NotApplied(Struct, frozen=True):
    """The strategy does not apply, or its legality is not proved; ``reason`` is for the report.

    ``span`` is the access, loop or declaration at fault, where one is; ``remarks`` are for ``metafork explain``.
    """

    reason: str
    span: Span = NOWHERE
    remarks: tuple[Remark, ...] = ()


class Sign(Struct, frozen=True):
    """The paper's abbreviations for a strategy in traces (section 5).

    ``applied`` stands where it was applied (its name, where this is empty), ``left_out`` where it could have been and
    was not; ``denies`` is a counter's sign that does not stand where it was applied.
    """

    applied: str = ""
    left_out: str = ""
    denies: str = ""


class AppliedOf(Protocol[V_co]):
    """``Applied`` for any kind of version."""

    @property
    def version(self) -> V_co:
        """The version after the strategy."""
        ...

    @property
    def note(self) -> str:
        """What was done, for people."""
        ...

    @property
    def schedule(self) -> Schedule | None:
        """The directives that make the version."""
        ...

    @property
    def effect(self) -> Effect | None:
        """What the version is like now."""
        ...

    @property
    def needs(self) -> tuple[Need[Any], ...]:
        """What must be there for a variant to pay."""
        ...

    @property
    def otherwise(self) -> StrategyOf[Any] | None:
        """The strategy that is tried where that is not there."""
        ...


class StrategyOf(Struct, Generic[V], frozen=True):
    """A strategy for any kind of version: for programs it is ``Strategy``.

    ``name`` is that of the command line and of every output, ``improves`` names the counters that it may improve.

    - ``on_ir``: it works on the LLVM IR (and so is appended to lambda) rather than on the program.
    - ``at_leaf``: it is also applied at a finished leaf (``cse``), where it worsens no counter.
    - ``proposes``: it worsens counters, and makes variants of a finished leaf.
    - ``by_choice``: it may make a cheaper kernel where no limit asks for it: it is then tried before, by cost.
    - ``caches``: it puts arrays into shared memory: it is not tried where a ``cache`` clause says which are.
    - ``sign``: its abbreviations in traces.
    """

    name: str
    improves: frozenset[str]
    on_ir: ClassVar[bool] = False
    at_leaf: ClassVar[bool] = False
    proposes: ClassVar[bool] = False
    by_choice: ClassVar[bool] = False
    caches: ClassVar[bool] = False
    sign: ClassVar[Sign] = Sign()

    def apply(self, version: V, analyses: Analyses) -> AppliedOf[V] | NotApplied:
        """Return the transformed version, or why there is none."""
        raise NotImplementedError


class Strategy(StrategyOf[Version], frozen=True):
    """A strategy for programs."""

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the transformed version, or why there is none."""
        raise NotImplementedError


def after(
    version: Version,
    schedule: Schedule,
    analyses: Analyses,
    note: str,
    effect: Effect | None = None,
    remarks: tuple[Remark, ...] = (),
    needs: tuple[Need[Version], ...] = (),
    otherwise: Strategy | None = None,
) -> Applied | NotApplied:
    """Return a version with directives applied, or why one of them is not."""
    program = applied(version.program, schedule, analyses)
    if isinstance(program, Refused):
        return NotApplied(program.reason, program.span, remarks)
    return Applied(replace(version, program=program), note, effect, remarks, needs, otherwise, schedule)
