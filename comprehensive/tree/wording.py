"""Limits in words: what a condition of a tree bounds, for the counters whose limits people know by name.

=====================================  ===========================================================
``29 <= R``                            at least 29 registers per thread (R)
``11264*quads <= 65536``               at most 20 warps of 88 allotted registers per thread (B <= 640)
``4096*quads <= RB``                   32 allotted registers per thread fit (4096*ceil(B/128) <= RB)
``B <= T``                             at most T threads per block (B)
``32 <= ub1*ceil1`` of a variant       at least one full warp (ub1*ceil(B0/4) >= 32)
``4*ceil2 <= n`` of a variant          n a multiple of 4
=====================================  ===========================================================

The words follow from the counter and its value alone, and say what the condition says: no more and no less.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from metafork.algebra.polynomial import ONE, Constraint, Polynomial, at_most
from metafork.comprehensive.tree.schedule_tree import CounterInfo, Node
from metafork.evaluators.counter import CounterValue

if TYPE_CHECKING:
    from metafork.comprehensive.tree.document import ScheduleDocument

UNITS = {
    "registers_per_thread": "registers per thread",
    "registers_per_block": "registers per block",
    "threads_per_block": "threads per block",
}
"""Of limits of machines, by their fields."""

ALLOTTED = "allotted registers"
"""Of a thread: what the hardware hands out, which is what it needs or a little more."""

FOUR_WARPS = (128, 256)
"""Their threads, of NVIDIA's GPUs and of AMD's."""


class Words(Struct, frozen=True):
    """What is said of a condition, and what stands in parentheses behind it.

    That is the condition itself where ``beside`` is empty, and nothing where it is ``None``.
    ``needed`` is said of what needs the condition to hold, where that is shorter.
    """

    said: str
    beside: str | None = ""
    needed: str = ""


def limits_in_words(schedule: ScheduleDocument) -> dict[Constraint, Words]:
    """Return the words for conditions of a tree and of its variants that counters made, and for their opposites."""
    counters = {one.name: one for one in schedule.counters if schedule.fields.get(one.limit) in UNITS}
    found: dict[Constraint, Words] = {}
    for name, value, condition in _conditions(schedule):
        if name in counters and value.denominator == ONE:
            for one, words in _in_words(schedule, counters[name], value.numerator, condition):
                found.setdefault(one, words)
    for leaf in schedule.leaves:
        for condition in (one for variant in leaf.variants for one in variant.limits):
            found.update(_multiples(schedule, condition))
    return found


def _multiples(schedule: ScheduleDocument, condition: Constraint) -> Iterator[tuple[Constraint, Words]]:
    """Yield what to say of ``k*ceil(x/k) <= x`` and of its opposite; nothing of another condition."""
    for symbol in schedule.derived:
        own, number = symbol.operands[0], symbol.operands[-1]
        whole = at_most(Polynomial.symbol(symbol.name) * number, own)
        if symbol.kind == "ceiling" and number.is_constant and condition == whole:
            said = f"multiple of {number.text()}"
            yield condition, Words(f"{own.text(schedule.order)} a {said}", None)
            yield condition.negated(), Words(f"{own.text(schedule.order)} no {said}", None)


def _conditions(schedule: ScheduleDocument) -> Iterator[tuple[str, CounterValue, Constraint]]:
    """Yield counter, value and condition of the nodes of the tree, then of the limits of variants."""
    trees = [schedule.root]
    while trees:
        tree = trees.pop()
        if isinstance(tree, Node):
            yield tree.counter, tree.value, tree.condition
            trees += [tree.refuse, tree.accept]
    for leaf in schedule.leaves:
        for variant in leaf.variants:
            for name, value in variant.counters.items():
                yield from ((name, value, one) for one in variant.limits if value.numerator in (one.left, one.right))


def _in_words(
    schedule: ScheduleDocument, counter: CounterInfo, value: Polynomial, condition: Constraint
) -> Iterator[tuple[Constraint, Words]]:
    field = schedule.fields[counter.limit]
    unit, text = UNITS[field], value.text(schedule.order)
    if field == "threads_per_block" and condition.right == value and condition.left.is_constant:
        least = condition.left.text()
        warp = least == "32"
        yield condition, Words("at least one full warp") if warp else Words(f"at least {least} {unit}", text)
        yield condition.negated(), Words("no full warp") if warp else Words(f"fewer than {least} {unit}", text)
        return
    fixed = schedule.fixed.get(counter.limit)
    limit = Polynomial.symbol(counter.limit) if fixed is None else Polynomial.constant(fixed)
    if condition != at_most(value, limit):
        return
    per_thread, width = _in_groups(schedule, value)
    if value.is_constant and fixed is None:
        accepted = Words(f"at least {text} {unit}", counter.limit, f"{text} {unit}")
        refused = Words(f"fewer than {text} {unit}", counter.limit)
    elif per_thread and fixed is not None:
        warps = f"{fixed // (width * per_thread) * 4} warps of {per_thread} {ALLOTTED} per thread"
        accepted, refused = Words(f"at most {warps}"), Words(f"more than {warps}")
    elif per_thread:
        own = f"{per_thread} {ALLOTTED} per thread"
        accepted = Words(f"{own} fit", f"{text} <= {counter.limit}", f"{text} {unit}")
        refused = Words(f"{own} do not fit", f"{text} > {counter.limit}")
    else:
        accepted, refused = (Words(f"{start} {limit} {unit}", text) for start in ("at most", "more than"))
    yield condition, accepted
    yield condition.negated(), refused


def _in_groups(schedule: ScheduleDocument, value: Polynomial) -> tuple[int, int]:
    """Return n and w if a value is ``n * w * ceil(threads / w)``, n registers per thread in fours of warps, else 0."""
    groups = next((one for one in schedule.derived if {one.name} == value.symbols and one.kind == "ceiling"), None)
    if groups is None or value.degree != 1 or not groups.operands[1].is_constant:
        return 0, 0
    width = groups.operands[1].constant_value()
    factor = value.divide_exactly(Polynomial.symbol(groups.name) * width)
    if width not in FOUR_WARPS or factor is None or not factor.is_constant or not factor.whole:
        return 0, 0
    return int(factor.constant_value()), int(width)
