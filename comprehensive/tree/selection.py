"""Which leaf a machine and parameter values choose, and why not the others (``metafork select``).

The walk is that of the generated ``select``: derived symbols are computed, Start is checked, then one condition after
the other; all arithmetic is exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from msgspec import Struct, field

from metafork.algebra.polynomial import Constraint
from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.tree.document import LeafDocument, ScheduleDocument, VariantDocument
from metafork.comprehensive.tree.schedule_tree import LeafReference, Node, NoLeaf, has_values


class Violation(Struct, frozen=True):
    """A condition that does not hold at a point, with the numbers of its two sides; as text it is what people read."""

    condition: str
    left: Number
    relation: str
    right: Number
    words: str = ""

    def __str__(self) -> str:
        return self._with(self.words) if self.words else self.exact

    @property
    def exact(self) -> str:
        """The same by the condition itself."""
        return self._with(f"{self.condition} does not hold")

    def _with(self, failed: str) -> str:
        opposite = {"<=": ">", "<": ">=", "==": "!="}[self.relation]
        return f"{failed}: {self.left} {opposite} {self.right}"


class Selection(Struct, frozen=True):
    """The chosen leaf (0: none) at a point.

    ``outside`` are the violated conditions of Start; ``region`` says why no leaf applies inside it, and ``refused`` is
    the limit that was asked last there; ``violated`` gives
    for every other leaf what fails in that of its systems which comes closest; ``estimates`` are the values of the
    chosen variant's counters; ``derived`` the values of derived symbols.  ``variant`` is the first of the leaf's that
    these values and its limits admit, and that runs where it fits as compiled too; ``passed_over`` are those before it
    that have no other values, with the limits that fail.
    """

    leaf: int
    outside: tuple[Violation, ...] = ()
    region: str = ""
    refused: Violation | None = None
    violated: Mapping[int, tuple[Violation, ...]] = field(default_factory=dict)
    estimates: Mapping[str, Number] = field(default_factory=dict)
    derived: Mapping[str, Number] = field(default_factory=dict)
    variant: VariantDocument | None = None
    passed_over: tuple[tuple[VariantDocument, tuple[Violation, ...]], ...] = ()


class MissingValueError(ValueError):
    """A symbol of the tree has no value; ``names`` are all such symbols."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        super().__init__(f"no value is given for {', '.join(names)}")


def select(schedule: ScheduleDocument, values: Mapping[str, Number]) -> Selection:
    """Walk the tree at a point, which gives every listed parameter of the schedule a value.

    Raises ``MissingValueError``.
    """
    point = dict(schedule.fixed) | dict(values)
    listed = (*schedule.data, *schedule.program, *schedule.opaque, *schedule.machine)
    missing = tuple(name for name in listed if name not in point)
    if missing:
        raise MissingValueError(missing)
    derived: dict[str, Number] = {}
    for symbol in schedule.derived:
        try:
            number = symbol.evaluate(point)
        except ZeroDivisionError:
            return Selection(0, (Violation(f"1 <= {symbol.operands[1].text(schedule.order)}", 1, "<=", 0),))
        if not -(2**63) <= number < 2**63:
            return Selection(0, region=f"{symbol.name} = {symbol.definition(schedule.order)} does not fit 64 bits")
        derived[symbol.name] = point[symbol.name] = number
    signs = tuple(Violation(f"0 <= {name}", 0, "<=", point[name]) for name in listed if point[name] < 0)
    outside = signs + _violations(schedule, schedule.start, point)
    if outside:
        return Selection(0, outside, derived=derived)
    tree, asked = schedule.root, None
    while isinstance(tree, Node):
        asked = tree.condition
        tree = tree.accept if asked.holds(point) else tree.refuse
    chosen = tree.leaf if isinstance(tree, LeafReference) else 0
    violated = {leaf.id: _closest(schedule, leaf, point) for leaf in schedule.leaves if leaf.id != chosen}
    region = schedule.defined(tree.reason) if isinstance(tree, NoLeaf) else ""
    if not chosen:
        refused = None if asked is None else _violation(schedule, asked, point)
        return Selection(chosen, (), region, refused, violated, derived=derived)
    passed_over = []
    for variant in schedule.leaves[chosen - 1].variants:
        missed = _violations(schedule, variant.limits, point)
        if has_values(variant.values, point) and not missed:
            break
        if has_values(variant.values, point):
            passed_over.append((variant, missed))
    estimates: dict[str, Number] = {}
    for name, value in variant.counters.items():
        divisor = value.denominator.evaluate(point)
        if divisor:
            estimates[name] = _plain(value.numerator.evaluate(point) / divisor)
    return Selection(chosen, (), region, None, violated, estimates, derived, variant, tuple(passed_over))


def machine_point(schedule: ScheduleDocument, limits: Mapping[str, Number]) -> dict[str, Number]:
    """Return the numbers of the schedule's machine symbols, from those of a machine's fields."""
    return {symbol: limits[name] for symbol, name in schedule.fields.items() if name in limits}


def other_machine(schedule: ScheduleDocument, point: Mapping[str, Number]) -> str | None:
    """Say which limit was fixed for other machines than that of a point, ``None`` if the tree is for this one too."""
    for symbol, number in schedule.fixed.items():
        if symbol in point and point[symbol] != number:
            return f"the tree was made for {schedule.fields.get(symbol, symbol)} = {number}, not {point[symbol]}"
    return None


def without_unasked(schedule: ScheduleDocument, values: Collection[str]) -> tuple[ScheduleDocument, tuple[str, ...]]:
    """Return the schedule without the parameters that neither have a value nor decide anything, and their names.

    What decides are the conditions of the tree, limits and counters.  Conditions of Start that the others do not
    determine are left out too.
    """
    used = set(_deciding(schedule))
    for symbol in reversed(schedule.derived):
        if symbol.name in used:
            used.update(*(operand.symbols for operand in symbol.operands))
    listed = (*schedule.data, *schedule.program, *schedule.opaque)
    unasked = tuple(name for name in listed if name not in values and name not in used)
    gone = set(unasked)
    for symbol in schedule.derived:
        if any(operand.symbols & gone for operand in symbol.operands):
            gone.add(symbol.name)

    def kept(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in gone)

    data, program, opaque = map(kept, (schedule.data, schedule.program, schedule.opaque))
    derived = tuple(symbol for symbol in schedule.derived if symbol.name not in gone)
    start = tuple(one for one in schedule.start if not one.symbols & gone)
    return replace(schedule, data=data, program=program, opaque=opaque, derived=derived, start=start), unasked


def _deciding(schedule: ScheduleDocument) -> Iterator[str]:
    trees = [schedule.root]
    while trees:
        tree = trees.pop()
        if isinstance(tree, Node):
            yield from tree.condition.symbols
            trees += [tree.accept, tree.refuse]
    for leaf in schedule.leaves:
        for system in leaf.systems:
            yield from (name for one in system for name in one.symbols)
        for variant in leaf.variants:
            yield from variant.values
            yield from (name for one in variant.limits for name in one.symbols)
            for value in variant.counters.values():
                yield from value.numerator.symbols | value.denominator.symbols


def told(schedule: ScheduleDocument, selection: Selection) -> list[str]:
    """Return what people read of a selection: the leaf, its variant, and why no other."""
    lines: list[str] = []
    if selection.outside:
        lines.append(f"{schedule.name}: no leaf; the tree does not apply to these values:")
        lines += [f"  {violation}" for violation in selection.outside]
    elif not selection.leaf:
        lines.append(f"{schedule.name}: no leaf, the serial code runs: {selection.refused or selection.region}")
        fixed = {counter.name: schedule.fixed.get(counter.limit) for counter in schedule.counters}
        if selection.region.startswith("threads_per_block:") and fixed["threads_per_block"] is not None:
            lines.append(f"  a block has at most {fixed['threads_per_block']} threads, such as 32 by 8")
    else:
        leaf = schedule.leaves[selection.leaf - 1]
        variant = selection.variant
        assert variant is not None
        title = "" if variant is leaf.own else f": {leaf.title_of(variant)}"
        lines.append(f"{schedule.name}: leaf {leaf.id} ({leaf.title})")
        lines.append(f"  variant {variant.number}, {variant.kernel}{title}")
        for name, number in selection.estimates.items():
            value = variant.counters[name]
            text = schedule.said_value(value)
            sampled = f" (sampled: {value.sampled})" if value.sampled else ""
            lines.append(f"    {name} = {text}{'' if text == str(number) else f' = {number}'}{sampled}")
        for passed, missed in selection.passed_over:
            reasons = "; ".join(map(str, missed))
            lines.append(f"  not variant {passed.number} ({leaf.title_of(passed)}): {reasons}")
    for number, violations in selection.violated.items():
        lines.append(f"  not leaf {number}: {'; '.join(map(str, violations))}")
    return lines


def _closest(schedule: ScheduleDocument, leaf: LeafDocument, point: Mapping[str, Number]) -> tuple[Violation, ...]:
    """Return what fails in the system of a leaf with the fewest failures."""
    return min((_violations(schedule, system, point) for system in leaf.systems), key=len)


def _violations(
    schedule: ScheduleDocument, system: Iterable[Constraint], point: Mapping[str, Number]
) -> tuple[Violation, ...]:
    return tuple(v for c in system for v in [_violation(schedule, c, point)] if v is not None)


def _violation(schedule: ScheduleDocument, constraint: Constraint, point: Mapping[str, Number]) -> Violation | None:
    if constraint.holds(point):
        return None
    plain = schedule.plain(constraint)
    left, right = plain.left.evaluate(point), plain.right.evaluate(point)
    exact, words = schedule.text(plain), schedule.failed(constraint)
    return Violation(exact, _plain(left), plain.relation, _plain(right), words)


def _plain(number: Fraction) -> Number:
    return int(number) if number.denominator == 1 else number
