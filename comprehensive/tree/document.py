"""A tree without its programs: what ``*.tree.json`` holds, and what rendering and selection read (DESIGN section 8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol, without_rounding
from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.systems.signs import Signs
from metafork.comprehensive.systems.systems import System
from metafork.comprehensive.tree.schedule_tree import (
    CounterInfo,
    Leaf,
    ScheduleTree,
    Tree,
    Variant,
    title_of,
    variant_title,
)
from metafork.comprehensive.tree.wording import Words, limits_in_words
from metafork.evaluators.counter import CounterValue
from metafork.ir.program import ParameterKind
from metafork.runtime.machine import SYMBOLS as LIMITS
from metafork.transform.directive import text_of


class VariantDocument(Struct, frozen=True):
    """A variant as ``Variant`` has it, its schedule as text, without its program."""

    number: int
    kernel: str
    strategies: tuple[str, ...] = ()
    effects: tuple[str, ...] | None = None
    counters: Mapping[str, CounterValue] = msgspec.field(default_factory=dict)
    limits: System = ()
    values: Mapping[str, int] = msgspec.field(default_factory=dict)
    schedule: str = ""

    @property
    def title(self) -> str:
        """What it is called wherever people read of it: by what it does, or by its strategies if it is old."""
        return title_of(self.strategies if self.effects is None else self.effects)


class LeafDocument(Struct, frozen=True):
    """A leaf as ``Leaf`` has it, without its programs."""

    id: int
    systems: tuple[System, ...]
    trace: tuple[str, ...]
    variants: tuple[VariantDocument, ...]
    witness: Mapping[str, Number] | None = None

    @property
    def own(self) -> VariantDocument:
        """The variant without limits."""
        return self.variants[-1]

    @property
    def title(self) -> str:
        """What the leaf is called wherever people read of it."""
        return self.own.title

    def title_of(self, variant: VariantDocument) -> str:
        """Return what is said of a variant beside what is said of the leaf."""
        return variant_title(variant.values, variant.effects or (), self.own.effects or ())


@dataclass(frozen=True, slots=True)
class ScheduleDocument:
    """One schedule's tree.  ``fields`` maps machine symbols to the machine's fields (targets to themselves).

    ``start`` leaves out what is understood: that every listed parameter is non-negative, and the definitions of
    ``derived``.  ``opaque`` are scalars that only the C code computes.
    """

    name: str
    function: str
    line: int
    data: tuple[str, ...]
    program: tuple[str, ...]
    machine: tuple[str, ...]
    fields: Mapping[str, str] = field(hash=False)
    derived: tuple[DerivedSymbol, ...]
    start: tuple[Constraint, ...]
    counters: tuple[CounterInfo, ...]
    strategies: tuple[str, ...]
    root: Tree
    leaves: tuple[LeafDocument, ...]
    fixed: Mapping[str, Number] = field(hash=False, default_factory=dict)
    opaque: tuple[str, ...] = ()
    complete: bool = True
    _texts: dict[tuple[Polynomial, str, Polynomial], str] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _words: dict[Constraint, Words] = field(init=False, repr=False, compare=False, default_factory=dict)

    @property
    def order(self) -> tuple[str, ...]:
        """The order of symbols within a printed product."""
        return (*self.program, *self.data, *(symbol.name for symbol in self.derived), *self.opaque, *self.machine)

    def text(self, constraint: Constraint) -> str:
        """Print a constraint with this schedule's order of symbols."""
        said = (constraint.left, constraint.relation, constraint.right)
        text = self._texts.get(said)  # files, drawing and report print the same ones
        if text is None:
            text = self._texts[said] = constraint.text(self.order)
        return text

    def plain(self, constraint: Constraint) -> Constraint:
        """Return the same condition as people read it: without roundings that integers do not need."""
        return without_rounding(constraint, {symbol.name: symbol for symbol in self.derived})

    def words(self, constraint: Constraint) -> Words | None:
        """Return the words for a limit that people know by name, ``None`` for all other conditions."""
        if not self._words:
            self._words.update(limits_in_words(self))
        return self._words.get(constraint)

    def said(self, constraint: Constraint, mark: str = "") -> str:
        """Print a constraint for people, with ``mark`` around formulas; ``text`` has the exact form.

        Limits are words; of other conditions a bound stands behind what it bounds.
        """
        words = self.words(constraint)
        if words is None:
            return f"{mark}{self._formula(constraint)}{mark}"
        if words.beside is None:
            return self.defined(words.said)
        return f"{words.said} ({mark}{self.defined(words.beside) or self._formula(constraint)}{mark})"

    def failed(self, constraint: Constraint) -> str:
        """Say that a constraint does not hold; the numbers of its sides may follow."""
        if self.words(constraint) is not None:
            return self.said(constraint.negated())
        return f"{self.defined(self.text(self.plain(constraint)))} does not hold"

    def _formula(self, constraint: Constraint) -> str:
        plain = self.plain(constraint)
        if plain.left.is_constant and plain.relation in _TURNED:
            return self.defined(f"{plain.right.text(self.order)} {_TURNED[plain.relation]} {plain.left.text()}")
        return self.defined(self.text(plain))

    def defined(self, text: str) -> str:
        """Return a text with what ceilings, maxima and minima are in place of their names."""
        for one in reversed(self.derived):
            if one.kind != "floor":
                text = re.sub(rf"\b{one.name}\b", one.definition(self.order), text)
        return text

    def said_together(self, system: System, mark: str = "") -> str:
        """Print constraints that hold together for people: ``1 <= x <= 5 and y < z``."""
        waiting = list(system)
        parts = []
        while waiting:
            first = waiting.pop(0)
            following = next((one for one in waiting if self._continues(first, one)), None)
            if following is None:
                parts.append(self.said(first, mark))
            else:
                waiting.remove(following)
                last = self.plain(following)
                text = f"{self.text(self.plain(first))} {last.relation} {last.right.text(self.order)}"
                parts.append(f"{mark}{self.defined(text)}{mark}")
        return " and ".join(parts)

    def needed(self, system: System, mark: str = "") -> str:
        """Print what something needs that runs only where constraints hold: ``needs 95 registers per thread``."""
        needs = []
        for one in system:
            words = self.words(one)
            needs.append(self.defined(words.needed) if words and words.needed else self.said(one, mark))
        return f"needs {' and '.join(needs)}" if needs else ""

    def _continues(self, first: Constraint, second: Constraint) -> bool:
        """Say whether two formulas are one with two signs."""
        if self.words(first) is not None or self.words(second) is not None:
            return False
        low, high = self.plain(first), self.plain(second)
        return low.right == high.left and "==" not in (low.relation, high.relation)

    def value_text(self, value: CounterValue) -> str:
        """Print the value of a counter."""
        return value_text(value, self.order)

    def said_value(self, value: CounterValue) -> str:
        """Print the value of a counter for people."""
        return self.defined(self.value_text(value))


_TURNED = {"<=": ">=", "<": ">"}


class TreeDocument(Struct, frozen=True):
    """The trees of one file."""

    source: str
    schedules: tuple[ScheduleDocument, ...]


def value_text(value: CounterValue, order: Sequence[str]) -> str:
    """Print a counter's value: a polynomial, or ``(numerator)/(denominator)``."""
    if value.denominator == ONE:
        return value.numerator.text(order)
    return f"({value.numerator.text(order)})/({value.denominator.text(order)})"


def document_of(tree: ScheduleTree) -> ScheduleDocument:
    """Return the document of a finished tree."""
    program = tree.program
    fields = {symbol: name for name, symbol in tree.machine.items()}
    return ScheduleDocument(
        name=program.name,
        function=program.function,
        line=program.span.line,
        data=tuple(p.name for p in program.parameters if p.kind is ParameterKind.DATA),
        program=tuple(p.name for p in program.parameters if p.kind is ParameterKind.PROGRAM),
        machine=tuple(symbol for symbol in fields if symbol not in tree.fixed and _listed(tree, symbol)),
        fields={symbol: name for symbol, name in fields.items() if _listed(tree, symbol)},
        derived=tree.derived,
        start=displayed_start(tree.start, tree.derived),
        counters=tree.counters,
        strategies=tree.strategies,
        root=tree.root,
        leaves=tuple(_leaf_document(leaf) for leaf in tree.leaves),
        fixed=tree.fixed,
        opaque=tree.opaque,
        complete=tree.complete,
    )


def _leaf_document(leaf: Leaf) -> LeafDocument:
    return LeafDocument(
        id=leaf.id,
        systems=leaf.systems,
        trace=leaf.trace,
        variants=tuple(map(_variant_document, leaf.variants)),
        witness=leaf.witness,
    )


def _variant_document(one: Variant) -> VariantDocument:
    schedule = text_of(one.schedule)
    return VariantDocument(
        one.number, one.kernel, one.strategies, one.effects, one.counters, one.limits, one.values, schedule
    )


def _listed(tree: ScheduleTree, symbol: str) -> bool:
    """The four limits are always listed, other machine symbols where a condition or a counter's value has them."""
    if symbol in {tree.machine.get(name) for name in LIMITS} or symbol in {c.limit for c in tree.counters}:
        return True
    if any(symbol in operand.symbols for one in tree.derived for operand in one.operands):
        return True
    return any(symbol in constraint.symbols for constraint in tree.start if not is_sign(constraint))


def is_sign(constraint: Constraint) -> bool:
    """Say whether a constraint is ``0 <= x`` for a symbol."""
    right = constraint.right
    return (
        constraint.relation == "<="
        and not constraint.left
        and len(right.symbols) == 1
        and right in {Polynomial.symbol(name) for name in right.symbols}
    )


def displayed_start(start: Iterable[Constraint], derived: Iterable[DerivedSymbol]) -> tuple[Constraint, ...]:
    """Return the start system without what is understood or follows at sight (``1 <= s*B`` from ``1 <= s, 1 <= B``)."""
    understood = {constraint for symbol in derived for constraint in _definition(symbol)}
    kept = [c for c in dict.fromkeys(start) if c not in understood and not is_sign(c)]
    symbols = {name for constraint in kept for name in constraint.symbols}
    signs = [at_most(ZERO, Polynomial.symbol(name)) for name in symbols]
    for constraint in tuple(kept):
        others = [other for other in kept if other != constraint]
        if constraint.relation != "==" and Signs([*signs, *others]).empty((), constraint.negated()):
            kept = others
    return tuple(kept)


def _definition(symbol: DerivedSymbol) -> tuple[Constraint, ...]:
    """The constraints that say what a derived symbol is, less those under which it is defined at all."""
    facts = symbol.constraints()
    return facts[2:] if symbol.kind in ("floor", "ceiling") else facts
