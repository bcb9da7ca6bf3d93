"""The result of the case discussion: a decision tree and its leaves (section 3.7 of the paper, DESIGN 6 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint
from metafork.algebra.symbols import DerivedSymbol
from metafork.evaluators.counter import CounterValue, Measure
from metafork.ir.program import Program, Version
from metafork.runtime.machine import OwnLimit
from metafork.strategies.strategy import Remark
from metafork.transform.directive import Schedule

ORDER = "order of leaves"
"""The subject of notes that say which leaf goes before which, and why."""
ESTIMATED = "left out by an estimate"
"""The subject of notes that say what is not a leaf because an estimate exceeds the limit everywhere."""
UNTOLD = "sizes of arrays"
"""The subject of notes that say which arrays have no size unless the host tells it."""

AS_WRITTEN = "as written"
"""The title of a leaf whose program nothing changed."""


class LeafReference(Struct, frozen=True):
    """A child that is a leaf; ``leaf`` is its number, from 1, in the order of preference."""

    leaf: int


class Inconsistent(Struct, frozen=True):
    """A child at which no machine and no parameters arrive: its system has no solution."""


class NoLeaf(Struct, frozen=True):
    """A child without a leaf: ``reason`` names the violated limit and the strategies tried.

    ``system`` is the region where no leaf applies (within Start).  ``brief`` is the limit alone, for drawings; empty
    where the reason has nothing more.
    """

    reason: str
    system: tuple[Constraint, ...] = ()
    brief: str = ""

    @property
    def beside(self) -> str:
        """What there is to say where the condition above it is read: nothing, if it is that one that does not hold."""
        why = self.brief or self.reason
        return "" if why.endswith("does not hold") else why


class Node(Struct, frozen=True):
    """An inner node: ``condition`` holds on the accept edge, its negation on the refuse edge.

    ``strategy`` is the one applied on the refuse edge, ``None`` where there was none left.
    """

    counter: str
    value: CounterValue
    condition: Constraint
    accept: Tree
    strategy: str | None
    refuse: Tree


Tree = Node | LeafReference | NoLeaf | Inconsistent


def without_decided(tree: Tree) -> tuple[Tree, list[str]]:
    """Pass over conditions that the path decides; return what follows, and the strategies applied on the way."""
    applied: list[str] = []
    while isinstance(tree, Node):
        if isinstance(tree.refuse, Inconsistent):
            tree = tree.accept
        elif isinstance(tree.accept, Inconsistent):
            applied += [tree.strategy] if tree.strategy is not None else []
            tree = tree.refuse
        else:
            break
    return tree, applied


class Variant(Struct, frozen=True):
    """A kernel of a leaf: a version of the program with the leaf's meaning, and when it may run.

    ``number`` is its place in the leaf, from 1.  It runs where ``limits`` hold too, and where parameters have its
    ``values``, which it is compiled for: it is an *instance* then.  ``strategies`` were applied in that order;
    ``schedule`` are their directives, which make the version of the program as it was written.  ``effects`` say what
    the version is like in the end (``x in shared memory``), empty where it is as written.  ``counters`` maps a
    counter's name to its value on the version.
    """

    number: int
    kernel: str
    version: Version
    strategies: tuple[str, ...] = ()
    schedule: Schedule | None = ()
    effects: tuple[str, ...] = ()
    counters: Mapping[str, CounterValue] = msgspec.field(default_factory=dict)
    limits: tuple[Constraint, ...] = ()
    values: Mapping[str, int] = msgspec.field(default_factory=dict)


def has_values(values: Mapping[str, int], point: Mapping[str, int | Fraction]) -> bool:
    """Say whether a point has these values."""
    return all(point.get(name) == value for name, value in values.items())


def values_text(values: Mapping[str, int]) -> str:
    """Print the values of static parameters: ``s = 4, B0 = 16``."""
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def listed_text(listed: Sequence[tuple[str, Sequence[int]]]) -> str:
    """Print the values that are listed for static parameters: ``s = 1, 2, 4; B0 = 16``."""
    return "; ".join(f"{name} = {', '.join(map(str, values))}" for name, values in listed)


class Leaf(Struct, frozen=True):
    """One leaf: the systems under which it is chosen, and its variants, in order of preference.

    The first variant runs whose limits hold.  The last one is the version that the case discussion came to: it has no
    limits, and what is said of the leaf (its ``version``, ``counters``, ``title``) is said of it.
    ``systems`` are displayed systems, irredundant within Start; ``trace`` uses the paper's abbreviations (section 5);
    ``witness`` is an integer point of the first system (targets of performance counters may be fractions), ``None``
    where none was found.
    """

    id: int
    systems: tuple[tuple[Constraint, ...], ...]
    trace: tuple[str, ...]
    variants: tuple[Variant, ...]
    witness: Mapping[str, int | Fraction] | None = None

    @property
    def own(self) -> Variant:
        """The variant without limits."""
        return self.variants[-1]

    @property
    def instances(self) -> tuple[Variant, ...]:
        """The variants for values of static parameters."""
        return tuple(one for one in self.variants if one.values)

    @property
    def version(self) -> Version:
        """The version that the case discussion came to."""
        return self.own.version

    @property
    def counters(self) -> Mapping[str, CounterValue]:
        """The values of counters on that version."""
        return self.own.counters

    @property
    def kernel(self) -> str:
        """The name of its kernel."""
        return self.own.kernel

    @property
    def title(self) -> str:
        """What the leaf does, in words."""
        return title_of(self.own.effects)

    @property
    def name(self) -> str:
        """What the leaf is called in a sentence."""
        return leaf_name(self.id, self.title)


def numbered(stem: str, variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Return variants with their places and the names of their kernels; the last one has that of the leaf, ``stem``."""
    *others, own = variants
    named = (replace(one, number=number, kernel=f"{stem}_v{number}") for number, one in enumerate(others, 1))
    return (*named, replace(own, number=len(variants), kernel=stem))


def title_of(effects: Sequence[str]) -> str:
    """Return what a version does, in words."""
    return ", ".join(effects) or AS_WRITTEN


def variant_title(values: Mapping[str, int], effects: Sequence[str], own: Sequence[str]) -> str:
    """Return what a variant is compiled for, or what it does that the leaf's own one, of other effects, does not."""
    if values:
        return f"for {values_text(values)}"
    return title_of([one for one in effects if one not in own] or effects)


def leaf_name(number: int, title: str) -> str:
    """Return what a leaf is called in a sentence: ``leaf 2 (a in shared memory)``."""
    return f"leaf {number} ({title})"


@dataclass(frozen=True, slots=True)
class CounterInfo:
    """A counter as the tree uses it; ``limit`` is the machine symbol after renaming away from the input's names.

    ``target`` is the default of a performance counter's target, ``less_is_better`` its direction; ``unit`` stands
    behind values, ``measure`` is what the dispatcher reads from the compiled kernel in place of the estimate, ``own``
    has the numbers of a limit that no field of a machine has.
    """

    name: str
    kind: str
    limit: str
    less_is_better: bool = True
    target: Fraction | None = None
    unit: str = ""
    measure: Measure | None = field(default=None, compare=False)
    own: OwnLimit | None = None


class Statistics(Struct):
    """What a run did: inner nodes, paths that end in a leaf, leaves after merging, and the work behind them."""

    nodes: int = 0
    paths: int = 0
    leaves: int = 0
    evaluations: int = 0
    applications: int = 0
    solver_calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ScheduleTree:
    """The comprehensive optimization of one schedule.

    ``machine`` maps the fields of a machine (``threads_per_block``) to their symbols here (``T_`` where the input has a
    ``T``).  ``derived`` are the symbols that stand for quotients, ceilings and extrema, in the order in which they can
    be computed; ``opaque`` are scalars of the program that occur in conditions and are computed by C code only.
    ``fixed`` gives the numbers of machine symbols that the user fixed: conditions hold them already.
    ``written`` is the program before the directives of its pragma, where it has one.
    ``notes`` are (subject, sentence) pairs for the report, ``remarks`` what its summary says of arrays and loops.
    """

    program: Program
    machine: Mapping[str, str] = field(hash=False)
    start: tuple[Constraint, ...]
    derived: tuple[DerivedSymbol, ...]
    counters: tuple[CounterInfo, ...]
    strategies: tuple[str, ...]
    root: Tree
    leaves: tuple[Leaf, ...]
    notes: tuple[tuple[str, str], ...] = ()
    complete: bool = True
    fixed: Mapping[str, int | Fraction] = field(hash=False, default_factory=dict)
    opaque: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()
    written: Program | None = None
    statistics: Statistics = field(compare=False, hash=False, default_factory=Statistics)

    @property
    def no_leaf_regions(self) -> tuple[NoLeaf, ...]:
        """The listed regions of Start in which no leaf applies, left to right."""
        found: list[NoLeaf] = []

        def visit(tree: Tree) -> None:
            match tree:
                case Node(accept=accept, refuse=refuse):
                    visit(accept)
                    visit(refuse)
                case NoLeaf(system=system) if system:
                    found.append(tree)
                case _:
                    pass

        visit(self.root)
        return tuple(found)
