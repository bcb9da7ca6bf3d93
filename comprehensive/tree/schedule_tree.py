"""The result of the case discussion: a decision tree and its leaves (section 3.7 of the paper, DESIGN 6 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from evaluators.counter import CounterValue, Measure
from metafork.algebra.polynomial import Constraint
from metafork.algebra.symbols import DerivedSymbol
from metafork.ir.program import Program, Version
from metafork.runtime.machine import OwnLimit
from strategies.strategy import Remark

ORDER = "order of leaves"
"""The subject of notes that say which leaf goes before which, and why."""
ESTIMATED = "left out by an estimate"
"""The subject of notes that say what is not a leaf because an estimate exceeds the limit everywhere."""

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


class Instance(Struct, frozen=True):
    """A kernel of a leaf for values of its static parameters; ``number`` is its place in the leaf, from 1.

    ``counters`` are the registers that it is estimated to take, where the tree counts them.  It runs where ``system``
    holds too: these are within the machine's limits.
    """

    number: int
    values: Mapping[str, int]
    version: Version
    kernel: str
    counters: Mapping[str, CounterValue] = msgspec.field(default_factory=dict)
    system: tuple[Constraint, ...] = ()


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
    """One leaf: a version of the program and the systems under which it is chosen.

    ``systems`` are displayed systems, irredundant within Start; ``strategies`` were applied in that order, and
    ``effects`` say what the leaf is like in the end (``x in shared memory``), empty where it is as written; ``trace``
    uses the paper's abbreviations (section 5); ``counters`` maps a counter's name to its value on this version;
    ``witness`` is an integer point of the first system (targets of performance counters may be fractions), ``None``
    where none was found.  ``instances`` are compiled beside the leaf's kernel, the dynamic instance, and run in its
    place where the arguments have their values.
    """

    id: int
    version: Version
    systems: tuple[tuple[Constraint, ...], ...]
    strategies: tuple[str, ...]
    trace: tuple[str, ...]
    kernel: str
    counters: Mapping[str, CounterValue]
    witness: Mapping[str, int | Fraction] | None = None
    effects: tuple[str, ...] = ()
    instances: tuple[Instance, ...] = ()
    static: bool = False

    @property
    def title(self) -> str:
        """What the leaf does, in words."""
        return ", ".join(self.effects) or AS_WRITTEN

    @property
    def name(self) -> str:
        """What the leaf is called in a sentence."""
        return leaf_name(self.id, self.title)

    def of(self, instance: Instance) -> Leaf:
        """Return an instance in the form of a leaf (``static``), for whoever makes code."""
        return replace(self, version=instance.version, kernel=instance.kernel, instances=(), static=True)


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
