"""What a strategy is: a named map from a version of a program to another with the same meaning, or a refusal.

A strategy proves its own legality; what is not proved is not applied.  It is idempotent, and it lowers (or leaves)
every counter named in ``improves`` (the sigma of the paper's section 3.4, read from the strategy's side).  It is a
frozen ``msgspec.Struct`` (or dataclass); its fields beyond those of the protocol below, where they have a default, are
its options (``granularity{most_loops=1}``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

from evaluators.counter import Counter
from metafork.analysis.analyses import Analyses
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.program import Version

Topic = Literal["shared memory", "registers", "grid", "constant memory"]


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


class Applied(Struct, frozen=True):
    """The new version, and one sentence for the report that says what was done and by what proof.

    ``effect`` names leaves (by default the strategy's name does); ``remarks`` are for ``metafork explain``.
    """

    version: Version
    note: str
    effect: Effect | None = None
    remarks: tuple[Remark, ...] = ()


class NotApplied(Struct, frozen=True):
    """The strategy does not apply, or its legality is not proved; ``reason`` is for the report.

    ``span`` is the access, loop or declaration at fault, where one is; ``remarks`` are for ``metafork explain``.
    """

    reason: str
    span: Span = NOWHERE
    remarks: tuple[Remark, ...] = ()


class Sign(Struct, frozen=True):
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


def at_fork(strategy: object) -> bool:
    """Say whether a strategy that worsens counters splits a finished leaf in two, with it and without.

    It says so in the attribute ``at_fork``, which it may leave out.
    """
    return getattr(strategy, "at_fork", False) is True


def by_itself(strategy: object) -> bool:
    """Say whether a strategy at a fork splits what the others leave, leaf by leaf: they do not depend on its costs.

    It says so in the attribute ``by_itself``, which it may leave out.
    """
    return at_fork(strategy) and getattr(strategy, "by_itself", False) is True


def by_choice(strategy: object) -> bool:
    """Say whether a strategy may make a cheaper kernel where no limit asks for it: it is then tried before, by cost.

    It says so in the attribute ``by_choice``, which it may leave out.
    """
    return getattr(strategy, "by_choice", False) is True


Least = int | Literal["warp_size"]
"""What a counter must be at least: a number, or the threads of a warp of the machine."""


def least(strategy: object) -> Mapping[str, Least]:
    """Return counters that must be so large afterwards for a strategy at a fork to pay; the leaf is split there too.

    It says so in the attribute ``least``, which it may leave out.
    """
    found = getattr(strategy, "least", None)
    return found if isinstance(found, Mapping) else {}


def floors(strategy: object) -> tuple[Counter, ...]:
    """Return counters of the strategy's own that must be at least 1 afterwards for it to pay; the leaf is split there.

    It names them in the attribute ``floors``, which it may leave out.  They take part in nothing else.
    """
    found = getattr(strategy, "floors", ())
    return found if isinstance(found, tuple) else ()


def falls_back(strategy: object) -> bool:
    """Say whether a path that has not what a strategy at a fork costs ends as it does without that strategy.

    It says so in the attribute ``falls_back``, which it may leave out: the path then ends without any at a fork.
    """
    return getattr(strategy, "falls_back", False) is True


def caches(strategy: object) -> bool:
    """Say whether a strategy puts arrays into shared memory: it is not tried where a ``cache`` clause says which are.

    It says so in the attribute ``caches``, which it may leave out.
    """
    return getattr(strategy, "caches", False) is True


NO_OPTIONS = frozenset(
    {
        "name",
        "improves",
        "on_ir",
        "at_leaf",
        "at_fork",
        "by_itself",
        "by_choice",
        "least",
        "floors",
        "falls_back",
        "caches",
        "sign",
    }
)
"""Fields of a strategy that every strategy has, and so no options."""


def sign_of(strategy: object) -> Sign:
    """Return the signs of a strategy in traces; it may leave them out, and then stands by its name."""
    sign = getattr(strategy, "sign", None)
    return sign if isinstance(sign, Sign) else Sign(str(getattr(strategy, "name", "")))
